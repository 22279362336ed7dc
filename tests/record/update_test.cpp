// Effects of the optimizer, found in its own step or in the next one: the steps that are kept.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "probe/trace/culprit.h"
#include "tests/record/side_by_side.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

/// A linear layer trained by Adam; the test sets `eps` and the format of the moments.
struct Adam {
  explicit Adam(at::ScalarType moments) {
    at::manual_seed(5);
    w = leaf(at::randn({64, 512}));  // 128 KiB: kept by reference
    m = at::zeros_like(w, moments).detach();
    v = at::zeros_like(w, moments).detach();
    x = at::randn({4, 512});
  }
  at::Tensor loss() { return at::matmul(x, w.t()).square().mean(); }
  void update(double rate, double eps) {
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    const at::Tensor g = w.grad().to(m.scalar_type());
    m.mul_(0.9).add_(g, 0.1);
    v.mul_(0.999).addcmul_(g, g, 0.001);
    w.addcdiv_(m.to(at::kFloat), (v.sqrt().add_(eps)).to(at::kFloat), -rate);
  }
  at::Tensor w, m, v, x;
};

struct Training {
  explicit Training(at::ScalarType moments, RecorderOptions options = {}) : net(moments), trace(options) {
    auto started = ObserverSession::start(trace);
    session.emplace(std::move(started).value());
  }
  /// A whole step; `eps` 0 in fp16 divides by zero where a moment underflows.
  void step(double rate, double eps, bool keep = true) {
    net.w.mutable_grad().reset();
    trace.begin_step(number);
    loss = net.loss();
    loss.backward();
    trace.begin_update(keep);
    net.update(rate, eps);
    if (end) trace.end_step(keep);
    ++number;
  }
  StepTables tables(std::int64_t of) {
    const ObserverPause pause;
    StepTables made(trace, *trace.find(of));
    const StepNames names{named_memory({{"w", net.w}}),
                          {},
                          named_memory({{"exp_avg.w", net.m}, {"exp_avg_sq.w", net.v}}),
                          named_memory({{"x", net.x}}),
                          {}};
    made.build(names);
    made.finish(names);
    return made;
  }
  void expect_culprit(std::int64_t of, const char* op) {
    const StepTables made = tables(of);
    EXPECT_TRUE(made.recording.notes.empty()) << made.recording.notes.front();
    const Replayer replayer = replayer_of(made.recording);
    const VerifyResult same = verify(replayer);
    EXPECT_TRUE(same.bit_exact) << same.mismatched << " of " << same.outputs_compared;
    EXPECT_GE(same.outputs_compared, 3);  // weight and moments
    const SnapshotDoc& doc = replayer.doc();
    ASSERT_NE(doc.culprit.op, kNone);
    EXPECT_EQ(culprit_op(doc).name, op) << describe_culprit(doc);
    EXPECT_EQ(culprit_op(doc).phase, Phase::optimizer);
  }

  Adam net;
  Recorder trace;
  std::optional<ObserverSession> session;
  std::int64_t number = 0;
  at::Tensor loss;
  bool end = true;
};

TEST(RecorderUpdate, AnEpsilonLostInHalfIsFoundRightAfterTheUpdate) {
  Training run(at::kHalf);
  for (int i = 0; i < 3; ++i) run.step(1e-3, 1e-3);
  run.end = false;
  run.net.x.select(1, 7).zero_();  // no gradient there: the second moment underflows, 0 / (0 + eps)
  run.net.m.select(1, 7).zero_();
  run.net.v.select(1, 7).zero_();
  run.step(1e-3, 1e-8);  // 1e-8 is 0 in half
  ASSERT_FALSE(run.net.w.isfinite().all().item<bool>());
  run.expect_culprit(3, "aten::addcdiv_");
}

TEST(RecorderUpdate, AnInfiniteRateIsFoundInTheNextStep) {
  Training run(at::kFloat);
  for (int i = 0; i < 3; ++i) run.step(1e-3, 1e-8);
  run.step(INFINITY, 1e-8);
  run.net.w.mutable_grad().reset();
  run.trace.begin_step(run.number);  // step 4: its loss is NaN
  const at::Tensor loss = run.net.loss();
  EXPECT_FALSE(loss.isfinite().item<bool>());
  EXPECT_EQ(run.trace.steps(), (std::vector<std::int64_t>{2, 3, 4}));
  run.expect_culprit(3, "aten::addcdiv_");
  const StepTables before = run.tables(2);  // two updates ago: also bit for bit, and finite
  const VerifyResult same = verify(replayer_of(before.recording));
  EXPECT_TRUE(same.bit_exact);
  EXPECT_GE(same.outputs_compared, 3);
  EXPECT_TRUE(before.first_value(run.net.w).isfinite().all().item<bool>());
}

TEST(RecorderUpdate, AClipByANormThatIsNaN) {
  Training run(at::kFloat);
  run.step(1e-3, 1e-8);
  run.net.w.mutable_grad().reset();
  run.trace.begin_step(run.number);
  run.net.loss().backward();
  run.trace.begin_update(true);
  {
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    const at::Tensor zero = run.net.w.grad().sub(run.net.w.grad()).norm();
    run.net.w.grad().mul_(zero.div(zero));  // max_norm / norm, both 0
  }
  run.net.update(1e-3, 1e-8);
  run.expect_culprit(1, "aten::div");
}

TEST(RecorderUpdate, WithoutValuesTheStepIsGoneAfterTheUpdate) {
  Training run(at::kFloat);
  run.step(1e-3, 1e-8, /*keep=*/false);
  EXPECT_TRUE(run.trace.steps().empty());
  EXPECT_EQ(run.trace.find(0), nullptr);
  run.step(1e-3, 1e-8);
  EXPECT_EQ(run.trace.steps(), std::vector<std::int64_t>{1});
}

TEST(RecorderUpdate, OnlyTheLastStepsStay) {
  Training run(at::kFloat, {.keep_steps = 2});
  for (int i = 0; i < 6; ++i) run.step(1e-3, 1e-8);
  EXPECT_EQ(run.trace.steps(), (std::vector<std::int64_t>{3, 4, 5}));  // 3 goes when 6 begins
  EXPECT_GT(run.trace.update_cost().bytes, 3u * 64 * 512 * 4 - 1);
  EXPECT_GT(run.trace.update_cost().copying, 0);
  EXPECT_GT(run.trace.update_cost().seconds, run.trace.update_cost().copying);  // its ops are recorded too
}

TEST(RecorderUpdate, NoneStaysIfNoneShould) {
  Training none(at::kFloat, {.keep_steps = 0});
  for (int i = 0; i < 3; ++i) none.step(1e-3, 1e-8);
  EXPECT_GT(none.trace.op_count(), 0u);
  EXPECT_TRUE(none.trace.steps().empty());
}

TEST(RecorderUpdate, AWriteBetweenStepsSpoilsOnlyTheProof) {
  Training run(at::kFloat);
  run.step(1e-3, 1e-8);
  run.step(1e-3, 1e-8);
  {
    const at::NoGradGuard no_grad;
    run.net.w.mul_(0.5);  // a program that shrinks its weights after the update
  }
  run.trace.begin_step(run.number);
  (void)run.net.loss();
  const StepTables made = run.tables(1);
  const VerifyResult same = verify(replayer_of(made.recording));
  EXPECT_EQ(same.mismatched, 0);
  EXPECT_EQ(same.outputs_compared, 2);  // the moments; the weight's value before it shrank is not known
}

}  // namespace
}  // namespace nanquest::testing
