// What a program computes between an update and the next step, where the step fails because of it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "probe/trace/culprit.h"
#include "probe/trace/lead_ops.h"
#include "tests/record/side_by_side.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

/// A weight that is trained on `factor`; `between` computes the next one.
struct Led {
  Led() {
    auto started = ObserverSession::start(trace);
    session.emplace(std::move(started).value());
  }

  void step() {
    w.mutable_grad().reset();
    trace.begin_step(number++);
    loss = (w * factor).square().mean() + held.mean();
    loss.backward();
    trace.begin_update(/*keep_values=*/true);
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    w.add_(w.grad(), -0.1);
    trace.updated();
  }

  /// A step, `between`, and the step that reads what it made.
  SnapshotDoc after(const std::function<void()>& between) {
    step();
    between();
    trace.end_step(/*keep=*/true);
    step();
    const ObserverPause pause;
    StepTables before(trace, *trace.find(number - 2)), now(trace, *trace.find(number - 1));
    before.build({});
    const StepNames names{named_memory({{"w", w}}), {}, {}, {}, {}};
    now.build(names);
    now.recording.doc.loss = now.describe(loss);
    now.recording.doc.gradients.push_back(now.describe(w.grad()));
    now.finish(names);
    before.lead_to(now);
    const Replayer replayer = replayer_of(now.recording);
    same = verify(replayer);
    return replayer.doc();
  }

  void expect_same_bits() const {
    EXPECT_TRUE(same.bit_exact) << same.mismatched << " of " << same.outputs_compared;
  }

  at::Tensor w = leaf(at::ones({1, 3})), factor = at::ones({1, 3}), held = at::full({4}, 2.f), loss;
  Recorder trace{{.keep_steps = 2, .stacks = false}};
  std::optional<ObserverSession> session;
  std::int64_t number = 0;
  VerifyResult same;
};

TEST(Lead, TheOpThatMadeTheValueComesBeforeTheStep) {
  Led training;
  SnapshotDoc doc = training.after([&] {
    const at::Tensor one = at::ones({1, 3});
    (void)(one + 1);  // nothing bad comes from it
    training.factor = (one - one.mean()) / one.std(0);
  });
  training.expect_same_bits();
  ASSERT_GT(lead_ops(doc), 0);
  (void)find_culprit(doc);
  ASSERT_NE(doc.culprit.op, kNone);
  EXPECT_EQ(culprit_op(doc).name, "aten::std");
  EXPECT_LT(doc.culprit.op, lead_ops(doc));
  EXPECT_EQ(lead_ops(doc), 5);  // ones, mean, sub, std, div
}

TEST(Lead, MemoryThatExistedBeforeIsAsTheUpdateLeftIt) {
  Led training;
  SnapshotDoc doc = training.after([&] {
    training.held.sub_(2);
    training.factor = training.held.slice(0, 0, 3).reciprocal().view({1, 3});
  });
  training.expect_same_bits();
  EXPECT_EQ(lead_ops(doc), 2);
  (void)find_culprit(doc);
  ASSERT_NE(doc.culprit.op, kNone);
  EXPECT_EQ(culprit_op(doc).name, "aten::reciprocal");
}

TEST(Lead, WhatWasBadBeforeOrIsMeantStaysOutside) {
  for (const auto& make : std::vector<std::function<at::Tensor(const at::Tensor&)>>{
           [](const at::Tensor&) {
             return at::ones({1, 3}).masked_fill(at::arange(3) == 1, NAN);
           },
           [](const at::Tensor& bad) { return bad * 2; }}) {
    Led training;
    const at::Tensor bad = at::full({1, 3}, NAN);
    const SnapshotDoc doc = training.after([&] { training.factor = make(bad); });
    EXPECT_EQ(lead_ops(doc), 0);
    EXPECT_TRUE(training.same.bit_exact);
  }
}

/// As `a.numpy()[1] = nan` after `a = b * 2`: the product is on record, and not what came after it.
TEST(Lead, WhatTheHostWroteAfterwardsIsNoResultOfTheseOps) {
  Led training;
  SnapshotDoc doc = training.after([&] {
    training.factor = training.held.slice(0, 0, 3).view({1, 3}) * 2;
    training.factor.data_ptr<float>()[1] = NAN;
  });
  training.expect_same_bits();
  EXPECT_EQ(lead_ops(doc), kNone);
  (void)find_culprit(doc);
  EXPECT_EQ(doc.culprit.origin, "input");
  EXPECT_EQ(doc.culprit.count, 1u);
  EXPECT_EQ(culprit_op(doc).name, "aten::mul");
}

TEST(Lead, NothingOfItIsThereWhereAllIsFinite) {
  Led training;
  const SnapshotDoc doc = training.after([&] {
    training.factor = training.held.slice(0, 0, 3).view({1, 3}) * 2;
  });
  EXPECT_EQ(lead_ops(doc), 0);
}

}  // namespace
}  // namespace nanquest::testing
