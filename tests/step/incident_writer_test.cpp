// What becomes of a bad step that is news, without a loop around it.
#include "probe/step/incident_writer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "probe/snapshot/reader.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;

class Writer : public ::testing::Test {
 protected:
  Writer() {
    std::string pattern = (fs::temp_directory_path() / "nanquest-writer-XXXXXX").string();
    run_dir_ = mkdtemp(pattern.data());
    fs::create_directories(run_dir_ + "/incidents");
  }
  ~Writer() override { fs::remove_all(run_dir_); }

  IncidentWriterOptions options() const { return {.run_dir = run_dir_}; }

  /// A step that divides by zero, recorded on request; with `bytes` of a weight.
  MadePages pages(std::int64_t step, std::int64_t bytes = 64) {
    return MadePages([this, step, bytes](Facts&) {
      ++made_;
      StepState state;
      state.step = step;
      const at::Tensor weight = at::ones({bytes / 4});
      state.parameters = {{"w", weight}};
      return record_step(state, [&] { return (weight / at::zeros({})).sum(); });
    });
  }

  std::string run_dir_;
  int made_ = 0;
};

TEST_F(Writer, names_the_culprit_and_writes_a_file) {
  IncidentWriter writer(nullptr, options());
  writer.begin(7);
  MadePages step = pages(7);
  Facts told;
  const std::string file = writer.write({Gate::non_finite, true}, step, told);
  EXPECT_EQ(file, run_dir_ + "/incidents/step-00000007.r0.h5");
  EXPECT_NE(text_of(told).find("aten::div"), std::string::npos) << text_of(told);
  const Result<SnapshotReader> read = SnapshotReader::open(file);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->doc().gate, Gate::non_finite);
  EXPECT_EQ(writer.count(), 1);
  EXPECT_EQ(writer.last_step(), 7);
}

TEST_F(Writer, asks_for_no_tables_of_a_step_that_may_have_no_file) {
  IncidentWriterOptions one = options();
  one.max_files = 1;
  IncidentWriter writer(nullptr, one);
  for (const std::int64_t step : {3, 4}) {
    writer.begin(step);
    MadePages it = pages(step);
    Facts told;
    EXPECT_EQ(writer.write({}, it, told).empty(), step == 4);
    EXPECT_EQ(text_of(told).find("no snapshot: 1 were written already (max_incidents)") == 0, step == 4)
        << text_of(told);
  }
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(writer.count(), 2);
}

TEST_F(Writer, counts_muted_incidents_apart) {
  IncidentWriterOptions quiet = options();
  quiet.muted = {{"aten::log", "head"}};
  IncidentWriter writer(nullptr, quiet);
  EXPECT_TRUE(writer.mutes("aten::log", "head"));
  EXPECT_FALSE(writer.mutes("aten::log", "body"));
  writer.begin(1, /*muted=*/true);
  EXPECT_EQ(writer.count(), 0);
  EXPECT_EQ(writer.muted(), 1);
  EXPECT_FALSE(writer.carry_on()) << "neither is what carries it on";
  EXPECT_EQ(writer.carried_on(), 0);
  writer.begin(2);
  EXPECT_TRUE(writer.carry_on());
  EXPECT_FALSE(writer.carry_on()) << "told once";
  EXPECT_EQ(writer.carried_on(), 2);
}

TEST_F(Writer, keeps_the_first_and_the_newest_within_its_share_of_the_disk) {
  IncidentWriterOptions tight = options();
  tight.max_disk = 15 << 20;
  tight.wake_steps = 10;
  IncidentWriter writer(nullptr, tight);
  std::vector<std::string> files;
  for (const std::int64_t step : {0, 100, 101, 200}) {
    writer.begin(step);
    MadePages it = pages(step, 4 << 20);
    Facts told;
    files.push_back(writer.write({}, it, told));
    EXPECT_FALSE(files.back().empty()) << text_of(told);
  }
  EXPECT_TRUE(fs::exists(files.front()));
  EXPECT_FALSE(fs::exists(files[2])) << "in the wake of another";
  EXPECT_TRUE(fs::exists(files.back()));
}

TEST_F(Writer, lets_a_spike_withhold_no_file_of_a_bad_step) {
  IncidentWriterOptions tight = options();
  tight.max_files = 2;
  tight.max_disk = 15 << 20;
  tight.wake_steps = 10;
  IncidentWriter writer(nullptr, tight);
  std::vector<std::string> files;
  for (const std::int64_t step : {99, 100, 200, 201}) {
    const bool spike = step == 99 || step == 200;
    spike ? writer.begin_spike(step) : writer.begin(step);
    MadePages it = pages(step, 4 << 20);
    Facts told;
    files.push_back(writer.write({.gate = spike ? Gate::spike : Gate::non_finite}, it, told));
    EXPECT_FALSE(files.back().empty()) << text_of(told);
    EXPECT_EQ(writer.last_bad_step() == step, !spike);
  }
  EXPECT_FALSE(fs::exists(files[0])) << "the first file, and of a spike";
  for (const int bad : {1, 3}) EXPECT_TRUE(fs::exists(files[static_cast<std::size_t>(bad)])) << bad;
}

TEST_F(Writer, says_why_there_is_no_file) {
  fs::remove_all(run_dir_ + "/incidents");
  std::ofstream(run_dir_ + "/incidents") << "in the way";
  IncidentWriter writer(nullptr, options());
  writer.begin(1);
  MadePages step = pages(1);
  Facts told;
  EXPECT_EQ(writer.write({}, step, told), "");
  EXPECT_NE(text_of(told).find("snapshot not written: "), std::string::npos) << text_of(told);
}

TEST_F(Writer, records_a_step_that_somebody_asked_for) {
  IncidentWriter writer(nullptr, options());
  MadePages step = pages(5);
  Facts told;
  const std::string file = writer.record(5, Gate::ok, step, told);
  EXPECT_TRUE(fs::exists(file)) << text_of(told);
  EXPECT_EQ(text_of(told).find("step 5: recorded as asked"), 0u) << text_of(told);
  EXPECT_EQ(writer.count(), 0);
}

}  // namespace
}  // namespace nanquest
