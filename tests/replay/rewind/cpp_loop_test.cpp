// The tape of a loop in C++: a real training under nanquest::Probe, whose clip and loss scale are the host's.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "replay/rewind/rewind.h"
#include "tests/guard/guarded_training.h"

namespace nanquest {
namespace {

using guard::testing::ScratchDirectory;

constexpr int kTape = 20, kLongest = 80;

/// exp(w · x) is made as large as it gets, by updates whose length the clip bounds: after some tens of steps
/// it leaves fp32. Dropout draws, momentum remembers, and the loss is scaled by 4.
struct Climb {
  at::Tensor w = at::full({8}, 0.1).requires_grad_(true), momentum = at::zeros({8});
  std::vector<double> losses;
  std::vector<std::string> said;
  std::string incident;
  std::int64_t bad = -1;

  /// `rate` of a step. Ends with the first step that is bad. `beta2`, of a step: by AdamW in one operation.
  Climb(const std::string& run_dir, int tape, const std::function<double(int)>& rate,
        const std::function<double(int)>& beta2 = {}) {
    constexpr double clip = 1;
    at::Tensor squares = at::zeros({8}), count = at::zeros({});
    at::manual_seed(7);
    ProbeOptions options{.run_dir = run_dir, .level = Level::trace, .min_loss_scale = 4, .tape = tape};
    auto probe = std::move(Probe::create(options)).value();
    probe->watch_parameter("climb.w", w);
    probe->watch_optimizer([this] {
      return std::vector<std::pair<std::string, at::Tensor>>{{"momentum.climb.w", momentum}};
    });
    for (int i = 0; i < kLongest && bad < 0; ++i) {
      const at::Tensor x = at::rand({16, 8});
      const StepInputs inputs{
          .step = i, .lr = rate(i), .loss_scale = 4, .clip_norm = clip, .batch = {{"x", x}}};
      const StepReport report = probe->step(inputs, [&] {
        const at::Tensor loss = at::matmul(at::dropout(x, 0.1, true), w).exp().mean().neg();
        (loss * 4).backward();
        return loss;
      });
      if (!report.summary.empty()) said.push_back(report.summary);
      if (!report.ok()) {
        bad = i;
        incident = report.incident;
        continue;
      }
      losses.push_back(report.loss);
      const StepReport updated = probe->update(i, [&] {
        const at::NoGradGuard no_grad;
        if (const double factor = report.clip_coefficient(clip); factor < 1) w.grad().mul_(factor);
        if (beta2) {
          count.add_(1);
          return at::_fused_adamw_({w}, {w.grad()}, {momentum}, {squares}, {}, {count}, rate(i), 0.9,
                                   beta2(i), 0, 1e-8, false, false);
        }
        momentum.mul_(0.5).add_(w.grad());
        w.sub_(momentum, rate(i));
      });
      EXPECT_TRUE(updated.ok()) << updated.summary;
    }
  }
};

double steady(int) {
  return 0.5;
}

TEST(CppLoop, NoBitOfTheTrainingIsAnotherWithATape) {
  const ScratchDirectory scratch;
  const Climb with(scratch.path + "/with", kTape, steady), without(scratch.path + "/without", 0, steady);
  EXPECT_GT(with.bad, kTape);
  EXPECT_EQ(with.bad, without.bad);
  EXPECT_EQ(with.losses, without.losses);
  EXPECT_TRUE(at::equal(with.w, without.w));
  EXPECT_TRUE(at::equal(with.momentum, without.momentum));
}

TEST(CppLoop, TheIncidentIsReachedFromTheFileAlone) {
  const ScratchDirectory scratch;
  const Climb run(scratch.path + "/run", kTape, steady);
  ASSERT_GT(run.bad, 2 * kTape - 5) << "anchors should have taken turns";
  const Result<SnapshotReader> file = SnapshotReader::open(run.incident);
  ASSERT_TRUE(file) << file.error().text();
  const Result<Rewind> rewind = Rewind::open(*file);
  ASSERT_TRUE(rewind) << rewind.error().text();
  EXPECT_EQ(rewind->steps().back().step, run.bad);
  EXPECT_GE(run.bad - rewind->steps().front().step, kTape);
  const Result<VerifyResult> verified = rewind->verify(at::kCPU);
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_EQ(verified->mismatched, 0);
  EXPECT_EQ(verified->failed_ops, 0);
  EXPECT_GT(verified->outputs_compared, 2);
}

TEST(CppLoop, AChangedRateIsWhatTheProgramDoesWithItClipIncluded) {
  const ScratchDirectory scratch;
  const Climb run(scratch.path + "/run", kTape, steady);
  const Result<SnapshotReader> file = SnapshotReader::open(run.incident);
  ASSERT_TRUE(file) << file.error().text();
  const Result<Rewind> rewind = Rewind::open(*file);
  ASSERT_TRUE(rewind) << rewind.error().text();
  const auto first = static_cast<std::size_t>(rewind->steps().front().step);
  const auto tried = rewind->try_changes({.changes = {"lr=*0.5", "clip=0.25"}, .placebos = 1}, at::kCPU, {});
  ASSERT_TRUE(tried) << tried.error().text();
  const Climb slower(scratch.path + "/slower", 0,
                     [&](int step) { return step < static_cast<int>(first) ? 0.5 : 0.25; });
  for (const RehearsedRun& seen : tried->runs) {
    EXPECT_EQ(seen.not_tried, "") << seen.change;
    if (seen.kind == RehearsedKind::unchanged) {
      EXPECT_EQ(seen.failed_step, run.bad);
      for (std::size_t i = 0; i < seen.losses.size(); ++i)
        EXPECT_EQ(static_cast<float>(seen.losses[i]), static_cast<float>(run.losses[first + i])) << i;
    }
    if (seen.change != "lr=*0.5") continue;
    const std::size_t both = static_cast<std::size_t>(run.bad) - first;
    ASSERT_GT(both, 10u);
    ASSERT_GE(seen.losses.size(), both);
    ASSERT_GE(slower.losses.size(), first + both);
    for (std::size_t i = 0; i < both; ++i)
      EXPECT_NEAR(seen.losses[i] / slower.losses[first + i], 1, 2e-3) << "step " << first + i;
  }
}

TEST(CppLoop, AnotherBetaIsWhatTheProgramDoesWithIt) {
  const ScratchDirectory scratch;
  const auto rate = [](int) { return 0.4; };
  const Climb run(scratch.path + "/run", kTape, rate, [](int) { return 0.999; });
  const Result<SnapshotReader> file = SnapshotReader::open(run.incident);
  ASSERT_TRUE(file) << file.error().text();
  const Result<Rewind> rewind = Rewind::open(*file);
  ASSERT_TRUE(rewind) << rewind.error().text();
  const auto first = static_cast<std::size_t>(rewind->steps().front().step);
  const auto tried =
      rewind->try_changes({.changes = {"beta2=0.5", "momentum=0.1"}, .placebos = 1}, at::kCPU, {});
  ASSERT_TRUE(tried) << tried.error().text();
  const Climb other(scratch.path + "/other", 0, rate,
                    [&](int step) { return step < static_cast<int>(first) ? 0.999 : 0.5; });
  const RehearsedRun& beta = tried->runs[tried->runs.size() - 2];
  ASSERT_EQ(beta.change, "beta2=0.5");
  EXPECT_EQ(beta.not_tried, "");
  const std::size_t both =
      std::min({static_cast<std::size_t>(run.bad) - first, beta.losses.size(), other.losses.size() - first});
  ASSERT_GT(both, 10u);
  for (std::size_t i = 0; i < both; ++i)
    EXPECT_NEAR(beta.losses[i] / other.losses[first + i], 1, 2e-3) << "step " << first + i;
  EXPECT_NE(tried->runs.back().not_tried.find("no operation of an update takes momentum"), std::string::npos);
}

TEST(CppLoop, StepsThatAreUndoneDoNotEndItForEver) {
  // The loss scale is found at the beginning: its overflows cut the tape again and again.
  const ScratchDirectory scratch;
  at::manual_seed(7);
  auto probe =
      std::move(Probe::create({.run_dir = scratch.path + "/run", .level = Level::trace, .tape = 4})).value();
  at::Tensor w = at::ones({4}).requires_grad_(true);
  probe->watch_parameter("w", w);
  StepReport report;
  for (int i = 0; i < 20; ++i) {
    const bool overflows = i < 8, bad = i == 19;
    report = probe->step({.step = i, .lr = 0.1, .loss_scale = 8}, [&] {
      const at::Tensor loss = (w * at::rand({4})).sum() * (bad ? std::nan("") : 1.0);
      (loss * (overflows ? INFINITY : 8.0)).backward();
      return loss;
    });
    EXPECT_EQ(report.gate, overflows ? Gate::scale_overflow : bad ? Gate::non_finite : Gate::ok) << i;
    if (report.ok())
      (void)probe->update(i, [&] {
        const at::NoGradGuard no_grad;
        w.sub_(w.grad(), 0.1);
      });
  }
  const Result<SnapshotReader> file = SnapshotReader::open(report.incident);
  ASSERT_TRUE(file) << report.summary;
  const Result<TapeDoc> tape = file->read_tape();
  ASSERT_TRUE(tape) << report.summary;
  EXPECT_GE(tape->steps.size(), 5u);
  EXPECT_EQ(tape->steps.back().step, 19);
}

TEST(CppLoop, ATapeWantsLevelTrace) {
  const ScratchDirectory scratch;
  for (const Level level : {Level::off, Level::guard, Level::watch}) {
    const auto probe = Probe::create({.run_dir = scratch.path + "/run", .level = level, .tape = 8});
    ASSERT_FALSE(probe);
    EXPECT_EQ(probe.error().code, ErrorCode::usage);
    EXPECT_NE(probe.error().text().find("level trace"), std::string::npos);
  }
}

}  // namespace
}  // namespace nanquest
