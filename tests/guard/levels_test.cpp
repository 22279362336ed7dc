// Levels trace and watch of a C++ loop: a step is recorded while it runs, not a second time.
#include <gtest/gtest.h>

#include <cmath>

#include "probe/snapshot/reader.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

Batch poisoned(const Batch& batch) {
  Batch bad{batch.x.clone(), batch.y, {"poisoned"}};
  bad.x[2][1] = std::nan("");
  return bad;
}

class Levels : public ::testing::TestWithParam<Level> {};

TEST_P(Levels, ABadStepIsOnRecordWithoutBeingRunAgain) {
  const std::vector<Batch> all = batches(4);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .level = GetParam()});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(guarded.step(i, all[static_cast<std::size_t>(i)]).ok());
  int calls = 0;
  const Batch bad = poisoned(all[3]);
  const StepReport report =
      guarded.probe->step({.step = 3, .batch = {{"x", bad.x}, {"y", bad.y}}, .sample_ids = bad.ids}, [&] {
        ++calls;
        return guarded.net.compute(bad);
      });
  EXPECT_EQ(report.gate, Gate::non_finite);
  EXPECT_EQ(calls, 1);
  const Result<SnapshotReader> file = SnapshotReader::open(report.incident);
  ASSERT_TRUE(file) << report.summary;
  const SnapshotDoc& doc = file->doc();
  const bool watch = GetParam() == Level::watch;
  EXPECT_EQ(doc.basis, watch ? "every_output" : "survivors");
  EXPECT_GT(doc.ops.size(), 20u);
  EXPECT_EQ(doc.parameters.size(), guarded.net.parameters.size());
  EXPECT_EQ(doc.gradients.size(), guarded.net.parameters.size());
  EXPECT_EQ(doc.batch.size(), 2u);
  EXPECT_EQ(doc.culprit.origin, watch ? "input" : "op") << report.summary;
  ASSERT_NE(doc.loss, kNone);
  // The buffers in the file are those before the step, which the batch norm has written over since.
  const Result<TensorData> mean = file->read_tensor(doc.buffers[0].data);
  ASSERT_TRUE(mean);
  const at::Tensor live = guarded.net.running_mean.contiguous();  // undone by now
  ASSERT_EQ(mean->bytes.size(), live.nbytes());
  EXPECT_EQ(std::memcmp(mean->bytes.data(), live.const_data_ptr(), live.nbytes()), 0);
}

TEST_P(Levels, WeightsAreThoseOfLevelGuard) {
  const std::vector<Batch> all = batches(8);
  const auto trained = [&](Level level) {
    const ScratchDirectory scratch;
    GuardedTraining guarded({.run_dir = scratch.path + "/run", .level = level});
    for (std::size_t i = 0; i < all.size(); ++i)
      (void)guarded.step(static_cast<std::int64_t>(i), i == 4 ? poisoned(all[i]) : all[i]);
    std::vector<at::Tensor> weights;
    for (const at::Tensor& p : guarded.net.parameters) weights.push_back(p.detach().clone());
    weights.push_back(guarded.net.running_var.clone());
    return weights;
  };
  const auto mine = trained(GetParam()), theirs = trained(Level::guard);
  for (std::size_t i = 0; i < mine.size(); ++i) EXPECT_TRUE(at::equal(mine[i], theirs[i])) << i;
}

TEST_P(Levels, ScaledGradientsAreDescribedAsBackwardLeftThem) {
  const std::vector<Batch> all = batches(1);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .level = GetParam()});
  at::Tensor& w = guarded.net.parameters[0];
  double amax = 0;
  const StepReport report = guarded.probe->step({.step = 0, .loss_scale = 8}, [&] {
    const at::Tensor loss = w.square().sum();
    (loss * 8).backward();
    amax = w.grad().abs().max().item<double>();
    return loss * std::nan("");
  });
  const Result<SnapshotReader> file = SnapshotReader::open(report.incident);
  ASSERT_TRUE(file) << report.summary;
  const SnapshotDoc& doc = file->doc();
  const TensorRow& row = doc.tensors[static_cast<std::size_t>(doc.gradients.at(0))];
  ASSERT_NE(row.stats, kNone);
  EXPECT_EQ(doc.stats[static_cast<std::size_t>(row.stats)].amax, amax);
}

TEST_P(Levels, AStepThatSpoilsABufferIsNoGoodStep) {
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .level = GetParam()});
  at::Tensor& w = guarded.net.parameters[0];
  at::Tensor& mean = guarded.net.running_mean;
  const auto step = [&](std::int64_t number, double value) {
    return guarded.probe->step({.step = number}, [&] {
      const at::Tensor loss = w.square().sum();
      loss.backward();
      const at::NoGradGuard no_grad;
      mean.mul_(0.9).add_(at::full({16}, value).log() * 0.1);
      return loss;
    });
  };
  EXPECT_TRUE(step(0, 1).ok());
  const StepReport bad = step(1, -1);
  EXPECT_EQ(bad.gate, Gate::non_finite);
  EXPECT_NE(bad.summary.find("norm.running_mean"), std::string::npos) << bad.summary;
  ASSERT_NE(bad.incident, "");
  EXPECT_TRUE(at::isfinite(mean).all().item<bool>()) << "it is undone";
  EXPECT_TRUE(step(2, 1).ok());
  if (GetParam() == Level::watch) {
    const Result<SnapshotReader> file = SnapshotReader::open(bad.incident);
    ASSERT_TRUE(file);
    ASSERT_NE(file->doc().culprit.op, kNone) << bad.summary;
    EXPECT_EQ(file->doc().ops[static_cast<std::size_t>(file->doc().culprit.op)].name, "aten::log");
  }
}

TEST_P(Levels, AnOverflowThatIsUndoneIsCalibrationWhateverItDidToBuffers) {
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .level = GetParam()});
  at::Tensor& w = guarded.net.parameters[0];
  const StepReport report = guarded.probe->step({.step = 0, .loss_scale = 1e30}, [&] {
    const at::Tensor loss = w.square().sum();
    (loss * 1e30 * 1e30).backward();
    const at::NoGradGuard no_grad;
    guarded.net.running_mean.add_(w.grad().sum());
    return loss;
  });
  EXPECT_EQ(report.gate, Gate::scale_overflow);
  EXPECT_EQ(report.incident, "");
  EXPECT_EQ(guarded.probe->incidents(), 0);
  EXPECT_TRUE(at::isfinite(guarded.net.running_mean).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(All, Levels, ::testing::Values(Level::trace, Level::watch),
                         [](const auto& info) { return info.param == Level::trace ? "trace" : "watch"; });

TEST(LevelWatch, HiddenDamageOfAGoodStepIsAnIncidentOnce) {
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .level = Level::watch});
  at::Tensor& w = guarded.net.parameters[0];
  const auto step = [&](std::int64_t number, double size) {
    return guarded.probe->step({.step = number}, [&] {
      const at::Tensor half = (w * 0 + size).to(at::kHalf);
      const at::Tensor loss = at::rsqrt(half * half).to(at::kFloat).sum() + w.sum();
      w.sum().backward();
      return loss;
    });
  };
  EXPECT_EQ(step(0, 1).incident, "");
  const StepReport hidden = step(1, 400);  // 160 000 is beyond fp16, and zeros come out
  EXPECT_EQ(hidden.gate, Gate::ok);
  EXPECT_NE(hidden.incident, "") << hidden.summary;
  EXPECT_EQ(step(2, 400).incident, "") << "told already";
  EXPECT_EQ(guarded.probe->incidents(), 1);
}

}  // namespace
}  // namespace nanquest::guard::testing
