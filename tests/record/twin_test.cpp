// The last healthy step's batch is kept for a step that goes bad: of which step, which values, and when none.
#include <gtest/gtest.h>

#include <cmath>

#include "probe/record/record_session.h"
#include "tests/record/programs.h"

namespace nanquest {
namespace {

using testing::kNaN;
using testing::TinyNet;

/// A program that records its steps one after the other, like the probe of a C++ loop.
struct Program : TinyNet {
  using Step = std::function<at::Tensor()>;

  /// One step; returns the recording if the step is not healthy.
  Recording run(std::int64_t number, bool healthy, const Step& compute) {
    clear();
    StepState s = state();
    s.step = number;
    RecordSession recording(*recorder, s, {.watch = false, .stacks = false});
    const at::Tensor loss = compute();
    recording.stop();
    recording.computed(loss, s.parameters);
    if (!healthy) return recording.end_and_own(s, recorder);
    recording.healthy();
    return {};
  }
  Recording run(std::int64_t number, bool healthy) {
    return run(number, healthy, [&] { return step(); });
  }
  void new_batch() {
    x = at::randn({6, 8});
    y = at::randint(0, 4, {6}, at::kLong);
  }
  std::shared_ptr<Recorder> recorder =
      std::make_shared<Recorder>(RecorderOptions{.keep_steps = 0, .stacks = false});
};

at::Tensor stored(const Recording& recording, const std::string& path) {
  for (const auto& [name, tensor] : recording.data)
    if (name == path) return tensor;
  return {};
}

/// The twin's value for the named tensor; undefined if there is none.
at::Tensor twins(const Recording& recording, const std::string& name) {
  for (const TwinValue& value : recording.doc.twin.values)
    if (value.slot != kNone && recording.doc.slots[static_cast<std::size_t>(value.slot)].name == name)
      return stored(recording, value.data);
  return {};
}

void expect_values(const at::Tensor& got, const at::Tensor& want) {
  ASSERT_TRUE(got.defined());
  EXPECT_TRUE(at::equal(got.view({-1}), want.reshape({-1})));
}

TEST(HealthyTwin, IsTheLastHealthyStepsBatch) {
  Program p;
  at::Tensor x, y;
  for (int n = 0; n < 5; ++n) {
    p.new_batch();
    x = p.x.clone(), y = p.y.clone();
    (void)p.run(10 + n, true);
  }
  p.new_batch();
  p.x[2][3] = kNaN;
  const Recording bad = p.run(15, false);
  EXPECT_EQ(bad.doc.twin.step, 14);
  EXPECT_EQ(bad.doc.twin.ops, static_cast<std::int32_t>(bad.doc.ops.size()));
  EXPECT_EQ(bad.doc.twin.values.size(), 2u);
  expect_values(twins(bad, "x"), x);
  expect_values(twins(bad, "y"), y);
}

TEST(HealthyTwin, IsNotTheBadStepBefore) {
  Program p;
  for (int n = 0; n < 3; ++n) p.new_batch(), (void)p.run(n, true);
  const at::Tensor x = p.x.clone();
  for (int n = 3; n < 6; ++n) {
    p.new_batch();
    p.x.fill_(kNaN);
    const Recording bad = p.run(n, false);
    EXPECT_EQ(bad.doc.twin.step, 2) << n;
    expect_values(twins(bad, "x"), x);
  }
}

TEST(HealthyTwin, OutlivesABatchThatIsOverwrittenInPlace) {
  Program p;
  p.x = at::randn({6000, 8});  // too large to be copied when it is read
  p.y = at::randint(0, 4, {6000}, at::kLong);
  for (int n = 0; n < 4; ++n) {
    p.x.copy_(at::randn({6000, 8}));
    (void)p.run(n, true);
  }
  const at::Tensor x = p.x.clone();
  p.x.fill_(kNaN);
  const Recording bad = p.run(4, false);
  EXPECT_EQ(bad.doc.twin.step, 3);
  expect_values(twins(bad, "x"), x);
  EXPECT_FALSE(twins(bad, "y").defined());  // the same bytes in both steps
}

TEST(HealthyTwin, OfALargeBatchIsACopy) {
  Program p;
  const auto compute = [&] {
    at::Tensor loss = at::mm(p.x, p.w1.t()).pow(2).mean() + p.w2.sum() * 0 + p.b1.sum() * 0;
    loss.backward();
    return loss;
  };
  at::Tensor x;
  for (int n = 0; n < 4; ++n) {
    p.x = at::randn({40000, 8});  // 1.3 MB
    x = p.x.clone();
    (void)p.run(n, true, compute);
  }
  p.x = at::full({40000, 8}, kNaN);
  const Recording bad = p.run(4, false, compute);
  EXPECT_EQ(bad.doc.twin.step, 3);
  expect_values(twins(bad, "x"), x);
}

TEST(HealthyTwin, IsAbsentWhereShapesDiffer) {
  Program p;
  (void)p.run(0, true);
  p.x = at::full({5, 8}, kNaN);
  p.y = at::zeros({5}, at::kLong);
  EXPECT_LT(p.run(1, false).doc.twin.step, 0);
}

TEST(HealthyTwin, IsAbsentAboveTheLimit) {
  Program p;
  const auto compute = [&] {
    at::Tensor loss = p.x.sum() * p.b1.sum();
    loss.backward();
    return loss;
  };
  p.x = at::zeros({static_cast<std::int64_t>(record::kTwinBytes) / 4 + 1});
  (void)p.run(0, true, compute);
  EXPECT_LT(p.recorder->memory(), std::size_t{16} << 20);
  p.x = p.x.clone().fill_(kNaN);
  EXPECT_LT(p.run(1, false, compute).doc.twin.step, 0);
}

TEST(HealthyTwin, HasRoomOnceItKnowsWhatLivesOn) {
  Program p;
  const at::Tensor average =
      at::zeros({static_cast<std::int64_t>(record::kTwinBytes) / 4});  // without a name
  const auto compute = [&] {
    at::Tensor loss = p.step();
    average.mul_(0.5);
    return loss;
  };
  for (int n = 0; n < 4; ++n) p.new_batch(), (void)p.run(n, true, compute);
  const at::Tensor x = p.x.clone();
  p.new_batch();
  p.x.fill_(kNaN);
  const Recording bad = p.run(4, false, compute);
  EXPECT_EQ(bad.doc.twin.step, 3);
  expect_values(twins(bad, "x"), x);
}

TEST(HealthyTwin, HoldsWhatHasNoNameToo) {
  Program p;
  at::Tensor mask;
  const auto compute = [&] {
    at::Tensor loss = (p.loss() * mask).sum();
    loss.backward();
    return loss;
  };
  at::Tensor last;
  for (int n = 0; n < 3; ++n) {
    mask = at::rand({6});
    last = mask.clone();
    (void)p.run(n, true, compute);
  }
  mask = at::full({6}, kNaN);
  const Recording bad = p.run(3, false, compute);
  ASSERT_EQ(bad.doc.twin.values.size(), 1u);  // x and y have not changed
  expect_values(stored(bad, bad.doc.twin.values[0].data), last);
}

TEST(HealthyTwin, IsAbsentWhereUnnamedMemoryWasRefilledBetweenTheSteps) {
  Program p;
  at::Tensor mask = at::rand({6});
  const auto compute = [&] {
    at::Tensor loss = (p.loss() * mask).sum();
    loss.backward();
    return loss;
  };
  for (int n = 0; n < 3; ++n) (void)p.run(n, true, compute);
  mask.fill_(kNaN);  // a batch or a persistent value: it is not known which
  EXPECT_LT(p.run(3, false, compute).doc.twin.step, 0);
}

TEST(HealthyTwin, LeavesUnnamedStateAsItIs) {
  Program p;
  at::Tensor average = at::zeros({});  // a running mean of the loss, without a name
  const auto compute = [&] {
    at::Tensor loss = p.loss() + average;
    loss.backward();
    average.mul_(0.5).add_(loss.detach(), 0.5);
    return loss;
  };
  for (int n = 0; n < 4; ++n) p.new_batch(), (void)p.run(n, true, compute);
  p.new_batch();
  average.fill_(kNaN);
  const Recording bad = p.run(4, false, compute);
  EXPECT_EQ(bad.doc.twin.step, 3);
  EXPECT_EQ(bad.doc.twin.values.size(), 2u);  // x and y
}

TEST(HealthyTwin, MovesToWhereTheStepReadsADataSet) {
  Program p;
  const at::Tensor data = at::randn({60, 8});
  for (int n = 0; n < 3; ++n) {
    p.x = data.narrow(0, 6 * n, 6);
    (void)p.run(n, true);
  }
  const at::Tensor last = p.x.clone();
  p.x = data.narrow(0, 30, 6);
  p.x.fill_(kNaN);
  const Recording bad = p.run(3, false);
  EXPECT_EQ(bad.doc.twin.step, 2);
  const at::Tensor moved = twins(bad, "x");
  ASSERT_TRUE(moved.defined());
  expect_values(moved.view({60, 8}).narrow(0, 30, 6), last);
}

TEST(HealthyTwin, MovesWhereTheStepTakesItsPartItself) {
  Program p;
  const at::Tensor data = at::randn({60, 8}), labels = at::randint(0, 4, {60}, at::kLong);
  std::int64_t row = 0;
  const auto compute = [&] {
    const at::Tensor x = p.x, y = p.y;  // the named tensor is another one
    p.x = data.narrow(0, row, 6);
    p.y = labels.narrow(0, row, 6);
    const at::Tensor loss = p.step();
    p.x = x, p.y = y;
    return loss;
  };
  for (int n = 0; n < 3; ++n) row = 6 * n, (void)p.run(n, true, compute);
  row = 30;
  data[32][1].fill_(kNaN);
  const Recording bad = p.run(3, false, compute);
  EXPECT_LT(bad.doc.twin.step, 0);  // the data set was overwritten since, and has no name
  data[32][1].fill_(1);
  for (int n = 4; n < 6; ++n) row = 6 * n, (void)p.run(n, true, compute);
  row = 42;
  const Recording other = p.run(6, false, compute);
  ASSERT_EQ(other.doc.twin.step, 5);
  ASSERT_EQ(other.doc.twin.values.size(), 2u);
  expect_values(stored(other, other.doc.twin.values[0].data).view({60, 8}).narrow(0, 42, 6),
                data.narrow(0, 6 * 5, 6));
  expect_values(stored(other, other.doc.twin.values[1].data).narrow(0, 42, 6), labels.narrow(0, 6 * 5, 6));
}

TEST(HealthyTwin, IsAbsentWhereTheStepReadAnotherPartOfWhatItMade) {
  Program p;
  std::int64_t row = 0;
  const auto compute = [&] {
    at::Tensor loss = (p.loss() * (p.x * 2).narrow(0, row, 6 - 3).sum()).sum();
    loss.backward();
    return loss;
  };
  (void)p.run(0, true, compute);
  row = 2;
  p.x = at::full({6, 8}, kNaN);
  EXPECT_LT(p.run(1, false, compute).doc.twin.step, 0);
}

TEST(HealthyTwin, IsAbsentWhereANumberWasAnother) {
  Program p;
  double factor = 1;
  const auto compute = [&] {
    at::Tensor loss = at::mul(p.loss(), factor);
    loss.backward();
    return loss;
  };
  (void)p.run(0, true, compute);
  p.x = at::full({6, 8}, kNaN);
  EXPECT_EQ(p.run(1, false, compute).doc.twin.step, 0);
  factor = 2;
  EXPECT_LT(p.run(2, false, compute).doc.twin.step, 0);
}

TEST(HealthyTwin, HoldsWhatTheHostWroteDuringTheStep) {
  Program p;
  float value = 1;
  const auto compute = [&] {
    const at::Tensor weights = at::empty({6});
    for (int i = 0; i < 6; ++i) weights.data_ptr<float>()[i] = value + static_cast<float>(i);
    at::Tensor loss = (p.loss() * weights).sum();
    loss.backward();
    return loss;
  };
  for (int n = 0; n < 3; ++n) value = static_cast<float>(n), (void)p.run(n, true, compute);
  value = kNaN;
  const Recording bad = p.run(3, false, compute);
  EXPECT_EQ(bad.doc.twin.step, 2);
  ASSERT_EQ(bad.doc.twin.values.size(), 1u);
  const TwinValue& host = bad.doc.twin.values[0];
  ASSERT_NE(host.op, kNone);
  EXPECT_EQ(bad.doc.ops[static_cast<std::size_t>(host.op)].name, "nanquest::host_write");
  expect_values(stored(bad, host.data), at::arange(2, 8, at::kFloat));
}

TEST(HealthyTwin, EndsWhereTheProgramWentAnotherWay) {
  Program p;
  const auto compute = [&] {
    const at::Tensor loss = p.step();
    if (!std::isfinite(loss.item<float>())) (void)at::zeros({3}).add(1);  // it reports the loss
    return loss;
  };
  (void)p.run(0, true, compute);
  p.x = at::full({6, 8}, kNaN);
  const Recording bad = p.run(1, false, compute);
  EXPECT_EQ(bad.doc.twin.step, 0);
  EXPECT_LT(bad.doc.twin.ops, static_cast<std::int32_t>(bad.doc.ops.size()));
  EXPECT_GT(bad.doc.twin.ops, 10);
}

}  // namespace
}  // namespace nanquest
