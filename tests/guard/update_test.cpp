// An update that spoils weights or moments: recorded and undone where it could be foreseen, said plainly
// where not.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "probe/record/record.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/reader.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

/// One step whose loss is `factor` times the usual one, updated without clipping.
StepReport unclipped(GuardedTraining& guarded, std::int64_t number, const Batch& batch, double factor) {
  TinyTraining& net = guarded.net;
  const StepReport gate = guarded.probe->step({.step = number, .lr = net.lr}, [&] {
    const at::Tensor loss = net.compute(batch);
    for (at::Tensor& p : net.parameters) p.mutable_grad().mul_(factor);
    return loss;
  });
  EXPECT_TRUE(gate.ok()) << gate.summary;
  return guarded.probe->update(number, [&] {
    const at::NoGradGuard no_grad;
    for (at::Tensor& s : net.steps) s.add_(1);
    std::vector<at::Tensor> values, gradients;
    for (const at::Tensor& p : net.parameters) {
      values.push_back(p.detach());
      gradients.push_back(p.grad());
    }
    at::_fused_adamw_(values, gradients, net.exp_avg, net.exp_avg_sq, {}, net.steps, net.lr, 0.9, 0.999, 0.01,
                      1e-8, false, false);
  });
}

TEST(Update, good_ones_are_as_without_the_probe) {
  const std::vector<Batch> all = batches(6);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .check_state_every = 1});
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(
        guarded.probe
            ->step({.step = static_cast<std::int64_t>(i)}, [&] { return guarded.net.compute(all[i]); })
            .ok());
    ASSERT_TRUE(guarded.probe->update(static_cast<std::int64_t>(i), [&] { guarded.net.update(); }).ok());
  }
  const auto mine = guarded.net.state();  // the generator too, before the other one starts from its seed
  TinyTraining bare;
  train_without_probe(bare, all);
  EXPECT_EQ(first_difference(mine, bare.state()), "");
  EXPECT_EQ(guarded.probe->incidents(), 0);
}

TEST(Update, recording_a_good_one_changes_no_bit) {
  const std::vector<Batch> all = batches(3);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double nan = std::nan("");  // a rate that is not finite makes the probe record the update
    ASSERT_TRUE(guarded.probe
                    ->step({.step = static_cast<std::int64_t>(i), .lr = nan},
                           [&] { return guarded.net.compute(all[i]); })
                    .ok());
    ASSERT_TRUE(guarded.probe->update(static_cast<std::int64_t>(i), [&] { guarded.net.update(); }).ok());
  }
  const auto mine = guarded.net.state();  // the generator too, before the other one starts from its seed
  TinyTraining bare;
  train_without_probe(bare, all);
  EXPECT_EQ(first_difference(mine, bare.state()), "");
}

TEST(Update, squares_that_overflow_are_recorded_named_and_undone) {
  const std::vector<Batch> all = batches(3);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .check_state_every = 1});
  ASSERT_TRUE(unclipped(guarded, 0, all[0], 1).ok());
  NamedTensors before;
  for (const auto& [name, t] : guarded.net.state())
    if (name.find("step.") != 0) before.emplace_back(name, t.clone());
  const StepReport report = unclipped(guarded, 1, all[1], 1e25);
  EXPECT_EQ(report.gate, Gate::non_finite);
  EXPECT_FALSE(report.state_corrupt);
  EXPECT_NE(report.summary.find("the update left optimizer state exp_avg_sq."), std::string::npos)
      << report.summary;
  EXPECT_NE(report.summary.find("_fused_adamw_"), std::string::npos) << report.summary;
  EXPECT_EQ(report.summary.find('\n'), std::string::npos);
  NamedTensors after;
  for (const auto& [name, t] : guarded.net.state())
    if (name.find("step.") != 0)
      after.emplace_back(name, t);  // the counters of this optimizer are not watched
  EXPECT_EQ(first_difference(after, before), "");

  const Result<SnapshotReader> file = SnapshotReader::open(report.incident);
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_NE(file->doc().culprit.op, kNone);
  EXPECT_EQ(file->doc().ops[static_cast<std::size_t>(file->doc().culprit.op)].name, "aten::_fused_adamw_");
  EXPECT_EQ(file->doc().culprit.phase, Phase::optimizer);
  EXPECT_EQ(file->doc().step, 1);
  EXPECT_TRUE(unclipped(guarded, 2, all[2], 1).ok());
  ASSERT_TRUE(guarded.probe->finish("done"));
  const Result<Manifest> manifest = read_manifest(scratch.path + "/run");
  ASSERT_TRUE(manifest);
  ASSERT_EQ(manifest->incidents.size(), 1u);
  EXPECT_EQ(manifest->incidents[0].file, "incidents/step-00000001.r0.h5");
}

TEST(Update, the_first_surprise_is_said_the_second_is_on_record) {
  const std::vector<Batch> all = batches(3);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .check_state_every = 1});
  ASSERT_TRUE(unclipped(guarded, 0, all[0], 1).ok());
  at::Tensor w = guarded.net.parameters[0].detach();
  const at::Tensor good = w.clone();
  const auto by_zero = [&](std::int64_t step) {
    EXPECT_TRUE(guarded.probe->step({.step = step}, [&] { return guarded.net.compute(all[1]); }).ok());
    return guarded.probe->update(step, [&] { w.div_(at::zeros({})); });
  };
  const StepReport first = by_zero(1);
  EXPECT_EQ(first.gate, Gate::non_finite);
  EXPECT_TRUE(first.state_corrupt);
  EXPECT_EQ(first.incident, "");
  EXPECT_NE(first.summary.find("parameter fc1.weight"), std::string::npos) << first.summary;
  EXPECT_NE(first.summary.find("not on record"), std::string::npos) << first.summary;
  EXPECT_FALSE(w.isfinite().all().item<bool>()) << "what was not recorded can't be undone";
  w.copy_(good);
  const StepReport second = by_zero(2);
  EXPECT_FALSE(second.state_corrupt) << second.summary;
  EXPECT_TRUE(at::equal(w, good));
  const Result<SnapshotReader> file = SnapshotReader::open(second.incident);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->doc().ops[static_cast<std::size_t>(file->doc().culprit.op)].name, "aten::div_");
  EXPECT_EQ(guarded.probe->incidents(), 2);
}

TEST(Update, a_bad_state_found_later_says_since_when) {
  const std::vector<Batch> all = batches(5);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .check_state_every = 2});
  for (std::int64_t i = 0; i < 4; ++i)
    ASSERT_TRUE(unclipped(guarded, i, all[static_cast<std::size_t>(i)], 1).ok());
  guarded.net.parameters[0].data_ptr<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  const StepReport report = guarded.step(4, all[4]);
  EXPECT_TRUE(report.state_corrupt);
  EXPECT_NE(report.summary.find(
                "fc1.weight was already non-finite when the step began; it was finite after step 2; what "
                "spoiled it since then is not on record"),
            std::string::npos)
      << report.summary;
}

TEST(Update, exceptions_pass_and_a_failing_disk_is_said) {
  const std::vector<Batch> all = batches(3);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .check_state_every = 1});
  for (const double lr : {0.1, std::nan("")}) {
    ASSERT_TRUE(guarded.probe->step({.step = 0, .lr = lr}, [&] { return guarded.net.compute(all[0]); }).ok());
    EXPECT_THROW(guarded.probe->update(0, [] { throw std::out_of_range("mine"); }), std::out_of_range);
  }
  std::filesystem::remove_all(scratch.path + "/run/incidents");
  std::ofstream(scratch.path + "/run/incidents") << "in the way";
  const StepReport report = unclipped(guarded, 1, all[1], 1e25);
  EXPECT_EQ(report.incident, "");
  EXPECT_FALSE(report.state_corrupt);
  EXPECT_NE(report.summary.find("snapshot not written"), std::string::npos) << report.summary;
}

}  // namespace
}  // namespace nanquest::guard::testing
