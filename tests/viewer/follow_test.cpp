// A run that is written while it is shown: what changed is read, and nothing else.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/writer.h"
#include "tests/viewer/story.h"
#include "viewer/model/strip.h"

namespace nanquest::viewer {
namespace {

class Follow : public testing::Story {
 protected:
  void SetUp() override { snapshot_ = testing::write_run(dir(), {.incidents = 2}); }
  std::string snapshot_;
};

TEST_F(Follow, NewStepsAreReadWithoutTheIncident) {
  Session session = open(dir());
  const OpenIncident* before = session.incident();
  const TensorDetail* tensor = session.tensor_detail();
  const std::uint64_t reading = session.reading();
  session.select_op(12);
  testing::write_series(dir(), testing::fixture_history(200));
  ASSERT_TRUE(session.poll());
  EXPECT_EQ(session.history().rows(), 200u);
  EXPECT_EQ(session.incident(), before) << "it was opened again";
  EXPECT_EQ(session.tensor_detail() != nullptr, tensor != nullptr);
  EXPECT_EQ(session.reading(), reading);
  EXPECT_EQ(session.selection().op, 12);
  EXPECT_FALSE(session.poll());
}

TEST_F(Follow, AnotherStatusIsReadWithoutTheIncident) {
  Session session = open(dir());
  const OpenIncident* before = session.incident();
  Manifest manifest = *read_manifest(dir());
  manifest.status = "finished";
  manifest.outcome = "all is well";
  ASSERT_TRUE(write_manifest(dir(), manifest));
  ASSERT_TRUE(session.poll());
  EXPECT_TRUE(says(session.status(), "all is well"));
  EXPECT_EQ(session.incident(), before);
}

TEST_F(Follow, AnIncidentThatTheManifestTellsOfIsListed) {
  Session session = open(dir());
  Manifest manifest = *read_manifest(dir());
  manifest.incidents.push_back({140, 0, "", "non_finite", "step 140: the loss is NaN"});
  ASSERT_TRUE(write_manifest(dir(), manifest));
  ASSERT_TRUE(session.poll());
  EXPECT_EQ(session.incidents().size(), 3u);
  EXPECT_EQ(session.incident()->doc.step, 131) << "what is open stays";
}

TEST_F(Follow, ANewVerdictIsShown) {
  std::filesystem::remove(verdict_path(snapshot_));
  Session session = open(dir());
  session.select_step(131);
  EXPECT_FALSE(strip_of(session).cause);
  ASSERT_TRUE(write_file_atomically(verdict_path(snapshot_), testing::fixture_verdict()));
  ASSERT_TRUE(session.poll());
  EXPECT_EQ(strip_of(session).says, "FP16_OVERFLOW");
}

TEST_F(Follow, TheFirstIncidentOfARunOpens) {
  const std::string run = temp_.path() + "/healthy";
  std::filesystem::create_directories(run);
  testing::write_series(run, testing::fixture_history(80));
  Session session = open(run);
  EXPECT_EQ(session.incident(), nullptr);
  testing::write_run(run);
  ASSERT_TRUE(session.poll());
  ASSERT_NE(session.incident(), nullptr);
  EXPECT_EQ(session.incident()->doc.step, 131);
}

TEST_F(Follow, TheFirstSeriesOfARunIsShown) {
  const std::string run = temp_.path() + "/young";
  testing::write_run(run, {.series = false});
  Session session = open(run);
  testing::write_series(run, {{"scalars", {"step", "loss"}, {0, 1, 1, 1}}, {"weight_norm", {"a"}, {3, 4}}});
  ASSERT_TRUE(session.poll());
  EXPECT_TRUE(session.history().has(session.selection().statistic));
}

/// What following costs if an incident with many ops is open: a fraction of what opening it costs.
TEST_F(Follow, IsCheapBesideALongTrace) {
  SnapshotDoc doc = testing::fixture_doc();
  for (Slot& slot : doc.slots) slot.data.clear();
  const OpRow op = doc.ops[4];
  doc.ops.resize(100000, op);
  std::filesystem::remove(snapshot_);
  Result<SnapshotWriter> writer = SnapshotWriter::create(snapshot_);
  ASSERT_TRUE(writer && writer->write_doc(doc) && writer->commit());
  const auto milliseconds = [](auto&& what) {
    const auto start = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  Session session = open(dir());
  session.select_step(131);
  ASSERT_EQ(session.incident()->trace.size(), 100000u);
  const double again = milliseconds([&] { ASSERT_TRUE(session.reload()); });
  testing::write_series(dir(), testing::fixture_history(200));
  const double poll = milliseconds([&] { ASSERT_TRUE(session.poll()); });
  std::printf("reading everything again %.1f ms, following %.1f ms: %.0f times less\n", again, poll,
              again / poll);
  EXPECT_EQ(session.history().rows(), 200u);
  EXPECT_LT(poll * 3, again);
}

}  // namespace
}  // namespace nanquest::viewer
