// The first Inf and the first NaN, compared with what LibTorch's anomaly mode says of the same step.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include "probe/observe/module_scope.h"
#include "replay/trace/detect.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

/// exp overflows in the forward pass and the loss hides it (1 / Inf = 0); backward multiplies 0 with Inf.
Step hidden_overflow() {
  const at::Tensor w = at::full({3}, 100.0).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"w", w}};
  step.run = [=] {
    at::Tensor h;
    {
      const ModuleScope hot("encoder.hot", "Exp");
      h = at::exp(w);
    }
    auto loss = at::reciprocal(h).sum();
    loss.backward();
    return loss;
  };
  return step;
}

std::string anomaly_message(const Step& step) {
  torch::autograd::AnomalyMode::set_enabled(true, true);
  std::string message;
  try {
    (void)step.run();
  } catch (const std::exception& e) {
    message = e.what();
  }
  torch::autograd::AnomalyMode::set_enabled(false, true);
  return message;
}

TEST(Detect, NamesTheInfThatAnomalyModeMisses) {
  const std::string theirs = anomaly_message(hidden_overflow());
  ASSERT_NE(theirs.find("ExpBackward0"), std::string::npos)
      << theirs;  // NaN, in backward, by node: all it knows
  EXPECT_EQ(theirs.find("hot"), std::string::npos);

  const Replayer replayer = replayer_of(record(hidden_overflow()));
  const RunResult run = replayer.run({});
  EXPECT_TRUE(run.loss_finite);
  EXPECT_FALSE(run.gradients_finite);
  const Detection found = detect(replayer.doc(), run);
  EXPECT_EQ(found.first_inf.name, "aten::exp");
  EXPECT_EQ(found.first_inf.phase, Phase::forward);
  EXPECT_EQ(found.first_inf.module, "encoder.hot");
  EXPECT_EQ(found.first_inf.kind, "inf");
  EXPECT_EQ(found.first_inf.count, 3u);
  EXPECT_EQ(found.first_inf.first, 0);
  EXPECT_TRUE(found.first_inf.inputs_finite);

  // The NaN: the same node that anomaly mode names, with the forward op and the way the Inf took.
  EXPECT_EQ(found.first_nan.node, "ExpBackward0");
  EXPECT_EQ(found.first_nan.name, "aten::mul.Tensor");
  EXPECT_EQ(found.first_nan.phase, Phase::backward);
  EXPECT_EQ(found.first_nan.forward_op, found.first_inf.op);
  EXPECT_EQ(found.first_nan.forward_name, "aten::exp");
  EXPECT_EQ(found.first_nan.module, "encoder.hot");
  EXPECT_EQ(found.first_nan.kind, "nan");
  EXPECT_FALSE(found.first_nan.inputs_finite);
  ASSERT_FALSE(found.first_nan.came_from.empty());
  EXPECT_EQ(found.first_nan.came_from.front(), found.first_inf.op);
  EXPECT_NE(describe(replayer.doc(), found.first_inf).find("aten::exp"), std::string::npos);
  EXPECT_NE(describe(replayer.doc(), found.first_nan).find("ExpBackward0 of aten::exp"), std::string::npos);
  EXPECT_GE(found.outputs_checked, 5);
}

TEST(Detect, AnInfiniteGradientWithoutNaNIsInvisibleToAnomalyMode) {
  const at::Tensor w = at::full({2}, 1e-30).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"w", w}};
  step.run = [=] {
    auto loss = (at::sqrt(w * 1e-20) * 1e25).sum();  // 1 / sqrt of nearly nothing
    loss.backward();
    return loss;
  };
  EXPECT_EQ(anomaly_message(step), "");
  w.mutable_grad().reset();
  const Replayer replayer = replayer_of(record(step));
  const Detection found = detect(replayer.doc(), replayer.run({}));
  EXPECT_EQ(found.first_nan.op, kNone);
  ASSERT_NE(found.first_inf.op, kNone);
  EXPECT_EQ(found.first_inf.phase, Phase::backward);
  EXPECT_EQ(found.first_inf.node, "SqrtBackward0");
  EXPECT_EQ(found.first_inf.forward_name, "aten::sqrt");
}

TEST(Detect, ABadInputIsNotABirth) {
  const at::Tensor x = at::ones({4});
  x[2] = NAN;
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [=] { return (x * 2).sum(); };
  const Replayer replayer = replayer_of(record(step));
  const RunResult run = replayer.run({});
  EXPECT_TRUE(run.births.empty());
  EXPECT_EQ(run.first_nan, kNone);
  EXPECT_FALSE(run.loss_finite);
  EXPECT_FALSE(detect(replayer.doc(), run).any());
}

TEST(Detect, OnlyTheBadPartOfASlotSpoilsItsReaders) {
  const at::Tensor x = at::ones({4});
  x[3] = INFINITY;
  const at::Tensor zero = at::zeros({2});
  Step step;
  step.state.batch = {{"x", x}, {"zero", zero}};
  step.run = [=] {
    return (x.narrow(0, 0, 2) / zero).sum();
  };  // reads finite elements of a slot that holds an Inf
  const Replayer replayer = replayer_of(record(step));
  const RunResult run = replayer.run({});
  ASSERT_EQ(run.births.size(), 1u);
  EXPECT_EQ(replayer.doc().ops[static_cast<std::size_t>(run.births[0])].name, "aten::div");
}

/// Names of the ops that a run calls births.
std::vector<std::string> births_of(const Step& step) {
  const Replayer replayer = replayer_of(record(step));
  std::vector<std::string> names;
  for (const std::int32_t op : replayer.run({}).births)
    names.push_back(replayer.doc().ops[static_cast<std::size_t>(op)].name);
  return names;
}

TEST(Detect, WhatAnOpOverwritesIsNoInput) {
  const at::Tensor x = at::full({4}, 1e6);
  at::Tensor target = at::full({4}, NAN, at::kHalf);
  Step step;
  step.state.batch = {{"x", x}, {"target", target}};
  step.run = [=]() mutable {
    target.copy_(x);  // out of range, whatever was there before
    return target.to(at::kFloat).sum();
  };
  EXPECT_EQ(births_of(step), std::vector<std::string>{"aten::copy_"});
}

TEST(Detect, MemoryThatNobodyWroteHasNoValues) {
  struct FilledWithNaN {  // empty() gives NaN, here and in the replay
    FilledWithNaN() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true); }
    ~FilledWithNaN() { at::globalContext().setDeterministicAlgorithms(false, false); }
  } const filled_with_nan;
  ASSERT_TRUE(at::isnan(at::empty({4})).all().item<bool>());
  const at::Tensor x = at::full({4}, 1e6);
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [=] {
    const at::Tensor target = at::empty({4}, at::kHalf);
    target.copy_(x);
    return target.to(at::kFloat).sum();
  };
  EXPECT_EQ(births_of(step), std::vector<std::string>{"aten::copy_"});
}

TEST(Detect, WhatCanNotBeComputedAgainIsNoBirth) {
  const at::Tensor x = at::ones({4});
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [=] { return (x / 0).sum(); };
  Recording recording = record(step);
  for (OpRow& op : recording.doc.ops)
    if (op.name == "aten::div") {
      op.flags |= kOpOpaque;  // as of a collective: what it made is on record
      op.host_data = "trace/opaque/000000/0";
    }
  recording.data.emplace_back("trace/opaque/000000/0", x / 0);
  EXPECT_TRUE(replayer_of(recording).run({}).births.empty());
}

TEST(Detect, MaskConstantsAreNotBirths) {
  const Replayer replayer = replayer_of(record(program("manual_attention").make(0, at::kFloat)));
  const RunResult run = replayer.run({});
  EXPECT_TRUE(run.finite());
  EXPECT_TRUE(run.births.empty());
}

}  // namespace
}  // namespace nanquest::testing
