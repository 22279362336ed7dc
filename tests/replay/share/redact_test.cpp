// nanquest-replay redact: planted secrets, searched for in every byte of what it writes.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "probe/observe/module_scope.h"
#include "probe/record/record.h"
#include "probe/snapshot/reader.h"
#include "probe/trace/culprit.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest {
namespace {

using testing::Output;
using testing::run_program;
using testing::Scratch;
using testing::slurp;

constexpr float kWeight = 3.1234567F, kPixel = 0.87654321F;
constexpr std::int64_t kToken = 4242;

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T& value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

/// What is planted, by what redacts it.
struct Secret {
  std::string option, name, bytes;
};

std::vector<Secret> secrets() {
  return {{"texts", "text of a sample", "the planted words"},
          {"texts", "tokens", bytes_of({kToken, kToken + 1})},
          {"samples", "id of a sample", "planted-client-7"},
          {"samples", "id of an earlier sample", "planted-client-3"},
          {"samples", "pixels", bytes_of({kPixel})},
          {"weights", "weights", bytes_of({kWeight, -kWeight / 3})},
          {"weights", "largest weight, as a statistic", bytes_of({static_cast<double>(kWeight)})},
          {"machine", "host", "planted-host"},
          {"machine", "variable", "planted-value"},
          {"settings", "setting", "planted-setting"},
          {"paths", "path", "/home/planted_user/data"},
          {"paths", "line of the program", "planted_train.py:17"},
          {"history", "history", bytes_of({123.456789})},
          {"names", "module", "planted_head"},
          {"names", "type", "PlantedHead"},
          {"names", "weight of which this process has a part", "part_of.pl"}};
}

class Redact : public ::testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(2);
    const at::Tensor table = at::randn({5000, 8}).set_requires_grad(true);
    at::Tensor w = at::rand({16, 8});
    w[3][0] = kWeight;
    w[3][1] = -kWeight / 3;
    w = w.clone().set_requires_grad(true);
    at::Tensor x = at::rand({4, 16}) * 0.5 + 0.1;
    x[0][1] = kPixel;
    x[2][3] = 0;
    const at::Tensor tokens = at::arange(kToken, kToken + 24).view({4, 6});
    StepState state;
    state.step = 17;
    state.parameters = {{"planted_head.weight", w}, {"planted_head.table", table}};
    state.batch = {{"pixels", x}, {"tokens", tokens}};
    state.sample_ids = {"planted-client-7", "b", "c", "d"};
    state.sample_texts = {"the planted words", "", "", ""};
    state.config = {{"data", "/home/planted_user/data"}, {"note", "planted-setting"}};
    state.history = {{"weight_norm", {"step", "planted_head"}, {15, 1.5, 16, 1.75}},
                     {"scalars", {"step", "loss", "grad_norm"}, {15, 2.5, 1.0, 16, 123.456789, 77.654321}}};
    state.history_samples.resize(2);
    state.history_samples[0].emplace_back("planted-client-3");
    Recording recording = record_step(state, [&] {
      const ModuleScope scope("planted_head", "PlantedHead");
      const at::Tensor found = at::embedding(table, tokens).mean(1);
      const at::Tensor loss = at::log(x).mean() + (found * at::mm(x, w)).sum();
      loss.backward();
      return loss;
    });
    recording.doc.host = "planted-host";
    recording.doc.environment["env.PLANTED"] = "planted-value";
    recording.doc.environment["part_of.pl"] = "rows 0 to 7 of 16";
    recording.doc.stacks.emplace_back(1, "planted_train.py:17 step");
    recording.doc.ops[0].stack = static_cast<std::int32_t>(recording.doc.stacks.size()) - 1;
    ASSERT_TRUE(find_culprit(recording.doc));
    const Status written = write_snapshot(recording, original_);
    ASSERT_TRUE(written.ok()) << written.error().text();
    before_ = slurp(original_);
    for (const Secret& secret : secrets())
      ASSERT_NE(before_.find(secret.bytes), std::string::npos) << secret.name;
  }

  Output redact(const std::string& arguments) {
    return run_program(
        std::string(NANQUEST_REPLAY) + " redact -q '" + original_ + "' -o '" + shared_ + "' " + arguments,
        scratch_);
  }
  nlohmann::json done(const std::string& arguments) {
    std::filesystem::remove(shared_);
    const Output o = redact("--json " + arguments);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(slurp(original_), before_) << "the original is untouched";
    return o.code == 0 ? nlohmann::json::parse(o.out) : nlohmann::json();
  }
  bool holds(const std::string& bytes) const { return slurp(shared_).find(bytes) != std::string::npos; }

  Scratch scratch_{"redact_test"};
  std::string original_ = scratch_ / "original.h5", shared_ = scratch_ / "shared.h5", before_;
};

TEST_F(Redact, WhatIsAskedToGoIsInNoByteAndTheRestStays) {
  for (const char* how : {"--scramble", "--drop"})
    for (const char* option :
         {"texts", "samples", "weights", "machine", "settings", "paths", "history", "names"}) {
      done(std::string(how) + " --no-check --" + option);
      for (const Secret& secret : secrets()) {
        const bool samples_hold_texts = std::string(option) == "samples" && secret.option == "texts";
        // A path among the settings goes with either, and the history is coarse where weights go.
        const bool path_setting = std::string(option) == "settings" && secret.name == "path";
        const bool statistics = secret.name == "largest weight, as a statistic" &&
                                (std::string(option) == "texts" || std::string(option) == "samples");
        // A line of the program names its function.
        const bool line = std::string(option) == "names" && secret.name == "line of the program";
        const bool earlier = std::string(option) == "history" && secret.name == "id of an earlier sample";
        // These two add to what usually goes.
        const bool adds = std::string(option) == "history" || std::string(option) == "names";
        const bool usual = secret.option != "history" && secret.option != "names";
        const bool goes = secret.option == option || (adds && usual) || line || earlier ||
                          samples_hold_texts || path_setting || statistics;
        EXPECT_EQ(holds(secret.bytes), !goes) << how << " --" << option << ": " << secret.name;
      }
      const auto reader = SnapshotReader::open(shared_);
      ASSERT_TRUE(reader.ok()) << reader.error().text();
      const auto tensors = reader->tensors();
      ASSERT_TRUE(tensors.ok());
      for (const TensorInfo& tensor : *tensors) EXPECT_TRUE(reader->read_tensor(tensor.path).ok());
    }
}

TEST_F(Redact, ByDefaultAllButHistoryAndNamesGoesAndTheVerdictIsTriedAgain) {
  const nlohmann::json said = done("");
  for (const Secret& secret : secrets())
    EXPECT_EQ(holds(secret.bytes), secret.option == "history" || secret.option == "names") << secret.name;
  // A zero stays a zero, so the step breaks in the same place for the same reason.
  EXPECT_TRUE(said["same_verdict"]) << said.dump(2);
  EXPECT_EQ(said["verdict_before"].get<std::string>().find("LOG_ZERO: aten::log in planted_head (forward)"),
            0u);
  EXPECT_NE(said["replay"].get<std::string>().find("no longer replays bit for bit"), std::string::npos);
  const auto info = nlohmann::json::parse(
      run_program(std::string(NANQUEST_REPLAY) + " info --json '" + shared_ + "'", scratch_).out);
  EXPECT_EQ(info["shared"]["redacted"], said["redacted"]);
  EXPECT_EQ(info["shared"]["redacted"][2], "weights (scrambled)");
  EXPECT_EQ(info["shared"]["verdict_before"], said["verdict_before"]);
  const Output verdict =
      run_program(std::string(NANQUEST_REPLAY) + " -q --no-files '" + shared_ + "'", scratch_);
  EXPECT_EQ(verdict.code, 1);
  EXPECT_NE(verdict.out.find("this file, redacted: texts (scrambled)"), std::string::npos) << verdict.out;
}

TEST_F(Redact, DroppedValuesLeaveTheRecordedTraceAndSaySo) {
  const nlohmann::json said = done("--drop --weights --samples --names --wrong 'the sensor was off'");
  EXPECT_NE(said["replay"].get<std::string>().find("can't be run any more"), std::string::npos)
      << said.dump(2);
  EXPECT_LT(said["bytes"], said["bytes_before"]);
  EXPECT_EQ(said["verdict_before"].get<std::string>().find("planted"), std::string::npos) << said.dump(2);
  const auto before = SnapshotReader::open(original_), after = SnapshotReader::open(shared_);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(after->doc().ops.size(), before->doc().ops.size());
  EXPECT_EQ(after->doc().culprit.op, before->doc().culprit.op);
  EXPECT_EQ(after->doc().culprit.count, before->doc().culprit.count);
  EXPECT_EQ(after->doc().parameters.size(), 2u);
  const std::string info =
      run_program(std::string(NANQUEST_REPLAY) + " info '" + shared_ + "'", scratch_).out;
  EXPECT_NE(info.find("corrected   the verdict is wrong: the sensor was off"), std::string::npos) << info;
}

TEST_F(Redact, PathsAloneLeaveTheReplayBitForBit) {
  const nlohmann::json said = done("--paths --machine --settings --names");
  EXPECT_NE(said["replay"].get<std::string>().find("still replays bit for bit"), std::string::npos)
      << said.dump(2);
  EXPECT_TRUE(said["same_verdict"]) << said.dump(2);
}

TEST_F(Redact, NormsAmongTheScalarsAreOfTheWeights) {
  ASSERT_NE(before_.find(bytes_of({77.654321})), std::string::npos);
  done("--weights");
  EXPECT_FALSE(holds(bytes_of({77.654321})));
}

TEST_F(Redact, NamesLeaveWhatAnEarlierCopySaysOfItsOriginal) {
  done("--paths");
  ASSERT_TRUE(holds("aten::log in planted_head"));  // its verdict before, kept in the copy
  const std::string again = scratch_ / "again.h5";
  const Output o = run_program(
      std::string(NANQUEST_REPLAY) + " redact -q '" + shared_ + "' -o '" + again + "' --names", scratch_);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(slurp(again).find("planted_head"), std::string::npos);
}

TEST_F(Redact, PlacesThatCantBeWrittenAreOneLineAndLeaveNothing) {
  const auto refused = [&](const std::string& out, int code, const std::string& part) {
    const Output o = run_program(
        std::string(NANQUEST_REPLAY) + " redact -q --no-check '" + original_ + "' -o '" + out + "'",
        scratch_);
    EXPECT_EQ(o.code, code) << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    EXPECT_TRUE(o.out.empty()) << o.out;
  };
  refused(original_, 2, "there is something of that name already");
  refused(original_ + "/below.h5", 3, "a part of the path is a file");
  EXPECT_EQ(slurp(original_), before_);
  EXPECT_EQ(run_program(std::string(NANQUEST_REPLAY) + " redact '" + original_ + "'", scratch_).code, 2);
  EXPECT_EQ(redact("--drop --scramble").code, 2);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path()))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 1) << "the original alone";
}

}  // namespace
}  // namespace nanquest
