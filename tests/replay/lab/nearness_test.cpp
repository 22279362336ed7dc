// A step that a change made finite is only right if fp64 makes the same of it.
#include "replay/lab/nearness.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "replay/lab/lab.h"
#include "tests/replay/diagnose/incident.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::leaf;

/// fp16: x² overflows, a quarter of its root is summed up.
Incident overflowing(const at::Tensor& x) {
  StepState state;
  state.parameters = {{"x", x}};
  return Incident(state, [=] {
    const at::Tensor h = x.to(at::kHalf);
    const at::Tensor loss = (at::sqrt(h * h + 1).to(at::kFloat) * 0.25).sum();
    loss.backward();
    return loss;
  });
}

std::int32_t op_named(const Incident& incident, const std::string& name) {
  for (std::size_t i = 0; i < incident.doc().ops.size(); ++i)
    if (incident.doc().ops[i].name == name) return static_cast<std::int32_t>(i);
  return kNone;
}

Nearness held_to_fp64(Lab& lab, RunOptions change) {
  const RunOptions exact = in_fp64(lab.graph(), change);
  change.keep = exact.keep;
  return nearness(lab.graph(), lab.run({}), lab.run(change), lab.run(exact));
}

/// Waiting for a busy machine takes no time away: what is tried there is what an idle one would try.
TEST(Lab, TimeWithoutAProcessorIsNotSpent) {
  const Incident incident = overflowing(leaf(at::full({4}, 300.0f)));
  Lab lab(incident.replayer(), {.seconds = 0.2});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_TRUE(lab.has_time());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (volatile int work = 0; lab.has_time() && std::chrono::steady_clock::now() < until;) work = work + 1;
  EXPECT_FALSE(lab.has_time());
}

TEST(Nearness, TheWholeStepInFp32IsNear) {
  const Incident incident = overflowing(leaf(at::full({4}, 300.0f)));
  Lab lab(incident.replayer());
  RunOptions change;
  change.precision = Precision::fp32;
  const Nearness n = held_to_fp64(lab, change);
  EXPECT_TRUE(n.known);
  EXPECT_LT(n.loss, 1e-6);
  EXPECT_LT(n.gradients, 1e-6);
  EXPECT_EQ(n.bad, 0);
  EXPECT_EQ(n.dead, 0);
  EXPECT_EQ(why_not_near(n, nearness_limits(lab.graph())), "");
}

TEST(Nearness, ZerosThatMakeTheStepFiniteAreToldFromACure) {
  const Incident incident = overflowing(leaf(at::full({4}, 300.0f)));
  Lab lab(incident.replayer());
  RunOptions change;  // "finite": every overflow becomes zero; fp64 has no overflow to be replaced
  change.edit.output_edit[op_named(incident, "aten::mul")] = [](std::vector<at::Tensor>& written) {
    written[0].masked_fill_(at::isinf(written[0]), 0);
  };
  const RunResult run = lab.run(change);
  ASSERT_TRUE(run.loss_finite);
  const Nearness n = held_to_fp64(lab, change);
  ASSERT_TRUE(n.known);
  // As the step is changed the loss is 4 · 0.25 · 1; in fp64 it is 4 · 0.25 · sqrt(90001).
  EXPECT_NEAR(n.loss, (std::sqrt(90001.0) - 1) / std::sqrt(90001.0), 1e-3);
  EXPECT_GE(n.dead, 1);
  EXPECT_NE(why_not_near(n, nearness_limits(lab.graph())).find("away from what fp64"), std::string::npos);
}

TEST(Nearness, WhatFailsInFp64IsNotCalledNear) {
  const at::Tensor x = leaf(at::full({2}, -1.0f));
  const Incident incident({}, [=] {
    const at::Tensor loss = at::log(x).sum();
    loss.backward();
    return loss;
  });
  Lab lab(incident.replayer());
  const Nearness n = held_to_fp64(lab, {});
  EXPECT_FALSE(n.known);
  EXPECT_NE(why_not_near(n, nearness_limits(lab.graph())), "");
}

}  // namespace
}  // namespace nanquest
