// nanquest-replay minimal: less of a file, the same verdict.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "probe/snapshot/reader.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest {
namespace {

using testing::Output;
using testing::record_sample;
using testing::run_program;
using testing::Scratch;

class MinimalFile : public ::testing::Test {
 protected:
  Output replay(const std::string& arguments) {
    return run_program(std::string(NANQUEST_REPLAY) + " " + arguments, scratch_);
  }
  nlohmann::json json(const std::string& arguments) { return nlohmann::json::parse(replay(arguments).out); }
  Scratch scratch_{"minimal_test"};
};

TEST_F(MinimalFile, GivesTheSameVerdictAndHoldsLess) {
  for (const char* sample : {"fp16_overflow", "log_zero", "bad_state"}) {
    const std::string original = record_sample(sample, scratch_, 1),
                      small = scratch_ / (std::string(sample) + "-small.h5");
    const std::string before = testing::slurp(original);
    const auto said =
        json("minimal -q --json '" + original + "' -o '" + small + "' --wrong 'not " + sample + "'");
    EXPECT_EQ(testing::slurp(original), before) << "the original is untouched";
    ASSERT_TRUE(said.contains("left_out")) << sample;
    EXPECT_LT(said["bytes"], said["bytes_before"]) << said.dump(2);
    EXPECT_FALSE(said["left_out"].empty()) << said.dump(2);
    const auto first = json("-q --json --no-files '" + original + "'"),
               now = json("-q --json --no-files '" + small + "'");
    for (const char* field : {"cause", "origin", "phase", "precision"})
      EXPECT_EQ(first[field], now[field]) << sample;
    for (const char* field : {"op", "module", "value", "count", "first"})
      EXPECT_EQ(first["culprit"][field], now["culprit"][field]) << sample << ": " << field;
    EXPECT_EQ(first["fix"].is_null(), now["fix"].is_null()) << sample;
    EXPECT_EQ(now["reproduction"]["bit_exact"], first["reproduction"]["bit_exact"]) << sample;
    const auto whole = SnapshotReader::open(original), part = SnapshotReader::open(small);
    ASSERT_TRUE(whole.ok() && part.ok());
    EXPECT_LT(part->doc().ops.size(), whole->doc().ops.size()) << sample;
    EXPECT_EQ(json("info --json '" + small + "'")["shared"]["wrong"], "not " + std::string(sample));
  }
}

TEST_F(MinimalFile, AnInnocentStepHasNoVerdictToKeep) {
  const std::string original = record_sample("innocent_mask", scratch_, 0);
  const Output o = replay("minimal -q '" + original + "' -o '" + (scratch_ / "small.h5") + "'");
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("holds nothing harmful, so there is no verdict to keep"), std::string::npos) << o.err;
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "small.h5"));
}

TEST_F(MinimalFile, NothingIsWrittenOver) {
  const std::string original = record_sample("div_zero", scratch_, 1), before = testing::slurp(original);
  EXPECT_EQ(replay("minimal -q '" + original + "' -o '" + original + "'").code, 2);
  EXPECT_EQ(testing::slurp(original), before);
  EXPECT_EQ(replay("minimal -q '" + original + "' -o '" + original + "/x.h5'").code, 3);
}

}  // namespace
}  // namespace nanquest
