// A tape whose steps come a second time: what is carried on, what begins again; on tables made by hand.
#include "replay/rewind/once_more.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "replay/rewind/changes.h"
#include "replay/rewind/last_batch.h"
#include "replay/rewind/outside_writes.h"
#include "replay/rewind/run_again.h"

namespace nanquest {
namespace {

constexpr int kSteps = 4;

/// Numbers w (a weight) and x0, x1, … (batches). Each step: loss = w · x and its gradient x, as a product;
/// then the update w −= rate · gradient. The last step has no update.
struct HandMade {
  TapeDoc tape;
  std::map<std::string, at::Tensor> data;

  std::int32_t slot(const std::string& name, SlotOrigin origin, float value) {
    const std::string path = kTapePrefix + name;
    tape.trace.slots.push_back(
        {.origin = origin, .bytes = 4, .dtype = DType::float32, .name = name, .data = path});
    data[path] = at::full({1}, value);
    return static_cast<std::int32_t>(tape.trace.slots.size()) - 1;
  }
  std::int32_t made() {
    Slot& slot = tape.trace.slots.emplace_back();
    slot.bytes = 4;
    slot.dtype = DType::float32;
    return static_cast<std::int32_t>(tape.trace.slots.size()) - 1;
  }
  std::int32_t row(std::int32_t slot) {
    tape.trace.tensors.emplace_back().slot = slot;
    return static_cast<std::int32_t>(tape.trace.tensors.size()) - 1;
  }
  void argument(std::int32_t tensor) {
    ArgRow& arg = tape.trace.args.emplace_back();
    arg.kind = ArgKind::tensor;
    arg.tensor = tensor;
  }
  /// `out` = a `name` b (times alpha); in place if `out` is a's slot.
  std::int32_t op(const char* name, const char* overload, std::int32_t a, std::int32_t b, std::int32_t out,
                  const double* alpha = nullptr) {
    SnapshotDoc& doc = tape.trace;
    OpRow op;
    op.name = name;
    op.overload = overload;
    op.first_arg = static_cast<std::int32_t>(doc.args.size());
    argument(row(a));
    argument(row(b));
    if (alpha) {
      ArgRow& number = doc.args.emplace_back();
      number.kind = ArgKind::real;
      number.real = *alpha;
    }
    op.arg_count = static_cast<std::int32_t>(doc.args.size()) - op.first_arg;
    op.first_output = row(out);
    op.output_count = 1;
    op.first_written = static_cast<std::int32_t>(doc.written.size());
    doc.written.push_back(op.first_output);
    op.written_count = 1;
    doc.ops.push_back(op);
    return op.first_output;
  }

  /// `scale`: each batch is multiplied in place by 2 before it is used. `odd`: in this step 2 is added to the
  /// weight before anything else.
  explicit HandMade(bool scale = false, int odd = -1) {
    const double rate = 0.5;
    const std::int32_t w = slot("w", SlotOrigin::parameter, 1);
    const std::int32_t one = slot("one", SlotOrigin::external, 1);
    const std::int32_t two = slot("two", SlotOrigin::external, 2);
    for (int i = 0; i < kSteps; ++i) {
      const std::int32_t x = slot("x" + std::to_string(i), SlotOrigin::external, static_cast<float>(i + 1));
      if (i == odd) op("aten::add_", "Tensor", w, two, w);
      if (scale) op("aten::mul_", "Tensor", x, two, x);
      const std::int32_t loss = op("aten::mul", "Tensor", w, x, made());
      TapeStep step{
          .step = 10 + i, .loss_op = static_cast<std::int32_t>(tape.trace.ops.size()) - 1, .loss = loss};
      const std::int32_t gradient = made();
      op("aten::mul", "Tensor", x, one, gradient);
      step.gate = static_cast<std::int32_t>(tape.trace.ops.size());
      if (i + 1 < kSteps) {
        op("aten::sub_", "Tensor", w, gradient, w, &rate);
        step.end = static_cast<std::int32_t>(tape.trace.ops.size());
      }
      tape.steps.push_back(step);
    }
  }
};

std::vector<double> losses(const HandMade& made, TapeDoc tape, const TapeRunner::Change& change = {},
                           std::optional<std::int64_t> left_out = {}) {
  const Status sound = check_tape(tape);
  EXPECT_TRUE(sound) << sound.error().text();
  auto runner = TapeRunner::make(std::move(tape), made.data, 13, left_out);
  EXPECT_TRUE(runner) << runner.error().text();
  RehearsedRun run;
  runner->run(change, at::kCPU, run);
  EXPECT_EQ(run.not_tried, "");
  EXPECT_EQ(run.first_step, 10);
  return run.losses;
}

/// The same in plain arithmetic.
std::vector<double> by_hand(int again, double rate, double scale = 1, bool last = true) {
  std::vector<double> all;
  double w = 1;
  for (int i = 0; i < kSteps; ++i) {
    const double x = scale * (i + 1);
    all.push_back(i + 1 < kSteps || last ? w * x : std::nan(""));
    if (i + 1 < kSteps) w -= rate * x;
  }
  for (int i = 0; i < again; ++i) {
    all.push_back(w * scale * (i + 1));
    w -= rate * scale * (i + 1);
  }
  return all;
}

void expect_same(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(std::isnan(b[i]) ? std::isnan(a[i]) : std::abs(a[i] - b[i]) < 1e-5)
        << i << ": " << a[i] << ", " << b[i];
}

TEST(OnceMore, WeightsGoOnAndBatchesComeAgain) {
  const HandMade made;
  expect_same(losses(made, made.tape), by_hand(0, 0.5));
  expect_same(losses(made, once_more(made.tape, 2)), by_hand(2, 0.5));
  expect_same(losses(made, once_more(made.tape, 64)), by_hand(kSteps - 1, 0.5));
  const TapeDoc again = once_more(made.tape, 64);
  ASSERT_EQ(again.steps.size(), 7u);
  EXPECT_EQ(again.steps[4].step, 14);
  EXPECT_EQ(again.steps[6].step, 16);
}

TEST(OnceMore, ABatchThatWasWrittenToIsFreshAgain) {
  const HandMade made(/*scale=*/true);
  expect_same(losses(made, once_more(made.tape, 3)), by_hand(3, 0.5, 2));
}

TEST(OnceMore, TheLastStepCanBeLeftOut) {
  const HandMade made;
  expect_same(losses(made, once_more(made.tape, 3, true), {}, 13), by_hand(3, 0.5, 1, false));
}

TEST(OnceMore, TheLastStepAloneRunsOnTheFirstWeights) {
  const HandMade made;
  auto runner = TapeRunner::make(last_step_alone(made.tape), made.data, 13);
  ASSERT_TRUE(runner) << runner.error().text();
  RehearsedRun run;
  runner->run({}, at::kCPU, run);
  EXPECT_EQ(run.not_tried, "");
  EXPECT_EQ(run.first_step, 13);
  expect_same(run.losses, {1.0 * kSteps});
}

/// The last step's weight (1 - .5 - 1 - 1.5 = -2) on the batch of the one before (3); what was multiplied in
/// place since is not there any more.
TEST(OnceMore, TheLastStepRunsOnTheBatchBefore) {
  const HandMade made;
  const std::optional<TapeDoc> other = last_step_on_batch_before(made.tape);
  ASSERT_TRUE(other);
  std::vector<double> expected = by_hand(0, 0.5);
  EXPECT_EQ(expected.back(), -2.0 * kSteps);
  expected.back() = -2.0 * (kSteps - 1);
  expect_same(losses(made, *other), expected);
  EXPECT_FALSE(last_step_on_batch_before(HandMade(/*scale=*/true).tape));
  EXPECT_FALSE(last_step_on_batch_before(HandMade(false, /*odd=*/kSteps - 1).tape)) << "another operation";
}

TEST(OnceMore, EveryUpdateIsSoMuchOfWhatItWas) {
  const HandMade made;
  expect_same(losses(made, once_more(made.tape, 3), {.rate = 0.25}), by_hand(3, 0.125));
}

/// The rate of the n-th update from one on, and its gradient.
std::vector<double> by_hand(const std::function<double(int)>& rate,
                            const std::function<double(double)>& gradient) {
  std::vector<double> all;
  double w = 1;
  int update = 0;
  for (int i = 0; i < 2 * kSteps - 1; ++i) {
    const double x = i % kSteps + 1;
    all.push_back(w * x);
    if (i + 1 != kSteps) w -= rate(++update) * gradient(x);
  }
  return all;
}

TEST(OnceMore, UpdatesGrowOverAWarmUp) {
  const HandMade made;
  const auto same = [](double x) { return x; };
  expect_same(losses(made, once_more(made.tape, 3), {.warmup = 5}),
              by_hand([](int n) { return 0.5 * std::min(n / 5.0, 1.0); }, same));
  expect_same(losses(made, once_more(made.tape, 3), {.warmup = 1}), by_hand([](int) { return 0.5; }, same));
}

TEST(OnceMore, LongGradientsAreClipped) {
  const HandMade made;
  expect_same(losses(made, once_more(made.tape, 3), {.clip = 1.5}),
              by_hand([](int) { return 0.5; }, [](double x) { return std::min(x, 1.5); }));
  auto runner = TapeRunner::make(once_more(made.tape, 3), made.data, 13);
  RehearsedRun run{.kind = RehearsedKind::change, .change = "clip=4"};
  runner->run({.clip = 4}, at::kCPU, run);
  EXPECT_EQ(run.not_tried, "no update has gradients of such a norm: the largest is 3");
  EXPECT_EQ(run.change, "clip=4");
  EXPECT_TRUE(run.losses.empty());
}

TEST(OnceMore, WhatIsWrittenOutsideOfUpdatesIsTakenBack) {
  EXPECT_TRUE(odd_steps(HandMade().tape).empty());
  const HandMade made(false, 2);
  EXPECT_EQ(odd_steps(made.tape), std::vector<std::int64_t>{12});
  EXPECT_GT(losses(made, made.tape)[2], by_hand(0, 0.5)[2] + 5);
  expect_same(losses(made, once_more(made.tape, 3), {.undo = 12}), by_hand(3, 0.5));
  RehearsedRun run;
  TapeRunner::make(made.tape, made.data, 13)->run({.undo = 11}, at::kCPU, run);
  EXPECT_EQ(run.not_tried, "step 11 writes no weight and no moment outside of its update");
}

TEST(OnceMore, AnUpdateWhoseGradientsNobodyKnowsIsNotClipped) {
  HandMade made;
  made.tape.trace
      .tensors[static_cast<std::size_t>(made.tape.trace.args[made.tape.trace.args.size() - 6].tensor)]
      .sizes = {1};
  auto runner = TapeRunner::make(made.tape, made.data, 13);
  RehearsedRun run;
  runner->run({.clip = 1}, at::kCPU, run);
  EXPECT_NE(run.not_tried.find("can't be told"), std::string::npos) << run.not_tried;
}

TEST(OnceMore, AStepWithoutAGateGetsOne) {
  HandMade made;
  const TapeStep last = made.tape.steps.back();
  made.tape.steps.pop_back();
  made.tape.trace.loss = last.loss;
  close_last_step(made.tape, 13);
  ASSERT_EQ(made.tape.steps.size(), 4u);
  EXPECT_EQ(made.tape.steps.back().gate, last.gate);
  EXPECT_EQ(made.tape.steps.back().loss, last.loss);
  EXPECT_EQ(made.tape.steps.back().loss_op, last.loss_op);
  close_last_step(made.tape, 13);
  EXPECT_EQ(made.tape.steps.size(), 4u);
}

TEST(OnceMore, ADecisionThatWouldBeAnotherEndsTheRun) {
  HandMade made;
  // The host reads the last loss as a whole number.
  SnapshotDoc& doc = made.tape.trace;
  OpRow asked;
  asked.name = "aten::_local_scalar_dense";
  asked.first_arg = static_cast<std::int32_t>(doc.args.size());
  asked.arg_count = 1;
  made.argument(made.tape.steps[3].loss);
  doc.ops.push_back(asked);
  made.tape.steps[3].gate = static_cast<std::int32_t>(doc.ops.size());
  made.tape.reads.push_back({static_cast<std::int32_t>(doc.ops.size()) - 1, by_hand(0, 0.5)[3], true});
  const auto run_with = [&](double rate) {
    auto runner = TapeRunner::make(once_more(made.tape, 3), made.data, 13);
    RehearsedRun run;
    runner->run({.rate = rate}, at::kCPU, run);
    return run;
  };
  EXPECT_EQ(run_with(1).losses.size(), 7u);
  const RehearsedRun other = run_with(0.5);
  EXPECT_TRUE(other.ended_itself);
  EXPECT_EQ(other.losses.size(), 3u);
  EXPECT_EQ(other.failure, "at step 13 the program would have decided otherwise (aten::_local_scalar_dense)");
}

}  // namespace
}  // namespace nanquest
