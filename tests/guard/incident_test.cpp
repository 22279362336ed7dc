// Which steps are incidents, which are not, and the content of their snapshots.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "probe/snapshot/manifest.h"
#include "probe/snapshot/reader.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Batch poisoned(const Batch& batch, double value) {
  Batch bad{batch.x.clone(), batch.y, {"poisoned"}};
  bad.x[2][1] = value;
  return bad;
}

/// A step whose loss is finite and whose gradient overflows, as a too large loss scale makes it.
StepReport overflow(GuardedTraining& guarded, std::int64_t step, double scale) {
  at::Tensor& w = guarded.net.parameters[0];
  return guarded.probe->step({.step = step, .loss_scale = scale}, [&] {
    const at::Tensor loss = (w * 0.1).square().sum();
    ((loss * 1e30) * 1e30).backward();  // 1e60 is beyond fp32, in the gradient only
    return loss;
  });
}

TEST(Incident, snapshot_holds_culprit_history_samples_and_state) {
  const std::vector<Batch> all = batches(12);
  const ScratchDirectory scratch;
  GuardedTraining guarded(
      {.run_dir = scratch.path + "/run", .history_rows = 100, .config = {{"lr", "0.01"}}});
  for (int i = 0; i < 11; ++i) ASSERT_TRUE(guarded.step(i, all[static_cast<std::size_t>(i)]).ok());
  const StepReport report = guarded.step(11, poisoned(all[11], kInf));
  ASSERT_EQ(report.gate, Gate::non_finite);
  EXPECT_EQ(report.incident, scratch.path + "/run/incidents/step-00000011.r0.h5");
  EXPECT_EQ(report.summary.find('\n'), std::string::npos);
  EXPECT_EQ(report.summary.find("not reproduced"), std::string::npos) << report.summary;

  const Result<SnapshotReader> file = SnapshotReader::open(report.incident);
  ASSERT_TRUE(file) << file.error().text();
  const SnapshotDoc& doc = file->doc();
  EXPECT_EQ(doc.step, 11);
  EXPECT_EQ(doc.gate, Gate::non_finite);
  EXPECT_EQ(doc.culprit.origin, "input") << report.summary;
  EXPECT_EQ(doc.culprit.tensor_name, "x");
  EXPECT_EQ(doc.sample_ids, std::vector<std::string>{"poisoned"});
  EXPECT_EQ(doc.config.at("lr"), "0.01");
  EXPECT_EQ(doc.parameters.size(), guarded.net.parameters.size());
  EXPECT_EQ(doc.buffers.size(), 2u);
  EXPECT_EQ(doc.optimizer.size(), 2 * guarded.net.parameters.size());
  ASSERT_EQ(doc.history.size(), 6u);
  EXPECT_EQ(doc.history[0].rows(), 12u);
  EXPECT_EQ(doc.history_samples.size(), 12u);
  EXPECT_EQ(doc.history_samples.back(), std::vector<std::string>{"poisoned"});
  EXPECT_EQ(doc.history[1].columns, (std::vector<std::string>{"fc1", "norm", "fc2"}));
  // The parameters in the file are those before the step.
  const Result<TensorData> weight = file->read_tensor(doc.parameters[0].data);
  ASSERT_TRUE(weight);
  const at::Tensor live = guarded.net.parameters[0].detach().contiguous();
  ASSERT_EQ(weight->bytes.size(), live.nbytes());
  EXPECT_EQ(std::memcmp(weight->bytes.data(), live.const_data_ptr(), live.nbytes()), 0);

  ASSERT_TRUE(guarded.probe->finish("stopped by the test"));
  const Result<Manifest> manifest = read_manifest(scratch.path + "/run");
  ASSERT_TRUE(manifest) << manifest.error().text();
  EXPECT_EQ(manifest->status, "finished");
  EXPECT_NE(manifest->command.find("probe_test"), std::string::npos) << manifest->command;
  EXPECT_EQ(manifest->outcome, "stopped by the test");
  ASSERT_EQ(manifest->incidents.size(), 1u);
  EXPECT_EQ(manifest->incidents[0].file, "incidents/step-00000011.r0.h5");
  EXPECT_EQ(manifest->incidents[0].gate, "non_finite");
}

TEST(Incident, overflows_of_the_loss_scale_are_calibration_however_many_come_in_a_row) {
  const std::vector<Batch> all = batches(3);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  ASSERT_TRUE(guarded.step(0, all[0]).ok());
  int said = 0;
  double scale = 65536;
  for (int i = 1; scale > 1; ++i, scale /= 2) {
    const StepReport report = overflow(guarded, i, scale);
    EXPECT_EQ(report.gate, Gate::scale_overflow) << report.summary;
    EXPECT_TRUE(std::isfinite(report.loss));
    EXPECT_EQ(report.incident, "");
    said += report.summary.find("in a row") != std::string::npos;
  }
  EXPECT_EQ(said, 1);
  EXPECT_EQ(guarded.probe->incidents(), 0);
  ASSERT_TRUE(guarded.step(20, all[1]).ok());
}

TEST(Incident, an_overflow_at_the_smallest_scale_is_one) {
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .min_loss_scale = 2});
  EXPECT_EQ(overflow(guarded, 0, 4).gate, Gate::scale_overflow);
  EXPECT_EQ(overflow(guarded, 1, 2).gate, Gate::non_finite);
  EXPECT_EQ(overflow(guarded, 2, 1).gate, Gate::non_finite);
  EXPECT_EQ(guarded.probe->incidents(), 2);
}

TEST(Incident, the_same_step_again_has_a_file_of_its_own_and_the_number_is_limited) {
  const std::vector<Batch> all = batches(1);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .max_incidents = 2});
  const StepReport first = guarded.step(0, poisoned(all[0], kInf));
  const StepReport second = guarded.step(0, poisoned(all[0], std::nan("")));
  const StepReport third = guarded.step(0, poisoned(all[0], std::nan("")));
  EXPECT_TRUE(std::filesystem::exists(first.incident));
  EXPECT_TRUE(std::filesystem::exists(second.incident));
  EXPECT_NE(first.incident, second.incident);
  EXPECT_EQ(third.gate, Gate::non_finite);
  EXPECT_EQ(third.incident, "");
  EXPECT_NE(third.summary.find("no snapshot"), std::string::npos) << third.summary;
}

TEST(Incident, a_failure_that_does_not_come_back_is_said_and_kept) {
  const std::vector<Batch> all = batches(1);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  int calls = 0;
  const StepReport report = guarded.probe->step({.step = 5}, [&] {
    const at::Tensor loss = guarded.net.compute(all[0]);
    return ++calls == 1 ? loss * std::nan("") : loss;
  });
  EXPECT_EQ(report.gate, Gate::non_finite);
  EXPECT_EQ(calls, 2);
  EXPECT_NE(report.summary.find("not reproduced"), std::string::npos) << report.summary;
  EXPECT_TRUE(std::filesystem::exists(report.incident));
}

TEST(Incident, state_that_was_bad_before_is_named) {
  const std::vector<Batch> all = batches(2);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  ASSERT_TRUE(guarded.step(0, all[0]).ok());
  guarded.net.parameters[4].data_ptr<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  const StepReport report = guarded.step(1, all[1]);
  EXPECT_EQ(report.gate, Gate::non_finite);
  EXPECT_TRUE(report.state_corrupt);
  EXPECT_NE(report.summary.find("fc2.weight"), std::string::npos) << report.summary;
  const Result<SnapshotReader> file = SnapshotReader::open(report.incident);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->doc().culprit.origin, "parameter");
}

TEST(Incident, a_weight_that_was_bad_from_the_beginning_is_one_only_when_it_is_read) {
  const std::vector<Batch> all = batches(4);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .check_state_every = 1});
  const at::Tensor unread = at::full({3}, std::numeric_limits<float>::quiet_NaN());
  guarded.probe->watch_parameter("head.weight", unread);
  const StepReport first = guarded.step(0, all[0]), second = guarded.step(1, all[1]);
  EXPECT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first.summary.find("head.weight"), std::string::npos) << first.summary;
  EXPECT_NE(first.summary.find("before the first update"), std::string::npos) << first.summary;
  EXPECT_EQ(second.summary, "");
  EXPECT_FALSE(second.state_corrupt);
  EXPECT_TRUE(guarded.probe->after_update(1));
  EXPECT_TRUE(guarded.probe->update(1, [] {}).ok());
  EXPECT_EQ(guarded.probe->incidents(), 0);
  // The step that reads it is the incident, and names it.
  const StepReport reads = guarded.probe->step({.step = 2}, [&] {
    const at::Tensor loss = guarded.net.compute(all[2]) + unread.sum();
    return loss;
  });
  EXPECT_EQ(reads.gate, Gate::non_finite);
  EXPECT_EQ(guarded.probe->incidents(), 1);
  EXPECT_NE(reads.summary.find("head.weight"), std::string::npos) << reads.summary;
  // What an update spoils is one as ever.
  guarded.net.exp_avg_sq[1].fill_(kInf);
  EXPECT_FALSE(guarded.probe->after_update(3));
}

TEST(Incident, steps_that_only_carry_on_its_damage_are_counted_and_not_written) {
  const std::vector<Batch> all = batches(6);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  ASSERT_TRUE(guarded.step(0, all[0]).ok());
  const float before = guarded.net.parameters[4].data_ptr<float>()[7];
  guarded.net.parameters[4].data_ptr<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(guarded.step(1, all[1]).incident, "");
  const StepReport second = guarded.step(2, all[2]), third = guarded.step(3, all[3]);
  EXPECT_EQ(second.gate, Gate::non_finite);
  EXPECT_TRUE(second.state_corrupt);
  EXPECT_EQ(second.incident + third.incident, "");
  EXPECT_NE(second.summary.find("from step 1"), std::string::npos) << second.summary;
  EXPECT_EQ(third.summary.find("from step 1"), std::string::npos) << third.summary;
  EXPECT_EQ(guarded.probe->incidents(), 1);
  // Once the weights are good again, what goes wrong is news.
  guarded.net.parameters[4].data_ptr<float>()[7] = before;
  EXPECT_NE(guarded.step(4, poisoned(all[4], kInf)).incident, "");
  EXPECT_EQ(guarded.probe->incidents(), 2);
  ASSERT_TRUE(guarded.probe->finish("done"));
  const Result<Manifest> manifest = read_manifest(scratch.path + "/run");
  ASSERT_TRUE(manifest) << manifest.error().text();
  ASSERT_EQ(manifest->incidents.size(), 2u);
  EXPECT_EQ(manifest->incidents[0].carried_on, 2);
  EXPECT_EQ(manifest->incidents[1].carried_on, 0);
}

TEST(Incident, bad_weights_and_moments_are_seen_after_the_update) {
  const std::vector<Batch> all = batches(3);
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .check_state_every = 1});
  ASSERT_TRUE(guarded.step(0, all[0]).ok());
  EXPECT_TRUE(guarded.probe->after_update(0));
  guarded.net.exp_avg_sq[1].fill_(kInf);
  EXPECT_FALSE(guarded.probe->after_update(0));
  guarded.net.exp_avg_sq[1].fill_(1);
  EXPECT_TRUE(guarded.probe->after_update(0));
}

}  // namespace
}  // namespace nanquest::guard::testing
