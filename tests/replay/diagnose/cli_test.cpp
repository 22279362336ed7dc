// The program nanquest-replay, as a person meets it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "probe/numerics/scan.h"
#include "probe/snapshot/reader.h"
#include "probe/snapshot/seal.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest {
namespace {

using testing::Output;
using testing::record_sample;
using testing::run_program;
using testing::Scratch;

class Cli : public ::testing::Test {
 protected:
  Output replay(const std::string& arguments) {
    return run_program(std::string(NANQUEST_REPLAY) + " " + arguments, scratch_);
  }
  void expect_one_line(const Output& o, int code, const std::string& part) {
    EXPECT_EQ(o.code, code) << o.out << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    EXPECT_TRUE(o.out.empty()) << o.out;
  }
  /// The sample's fresh snapshot, quoted for the shell.
  std::string quoted_sample(const std::string& name, int code) {
    std::string text = "'";
    text.append(record_sample(name, scratch_, code)).append("'");
    return text;
  }
  Scratch scratch_{"cli_test"};
};

TEST_F(Cli, ADeviceThatIsNotHereIsOneClearLine) {
  const std::string file = quoted_sample("div_zero", 1);
  expect_one_line(replay("verify --device cuda:63 " + file), 2,
                  "--device cuda:63: there is no such device here");
  expect_one_line(replay("-q --device nowhere " + file), 2, "--device nowhere: there is no such device here");
  EXPECT_EQ(replay("verify --device cpu " + file).code, 0);
  EXPECT_EQ(replay("verify " + file).code, 0);
}

TEST_F(Cli, PrintsTheVerdictAndLeavesThreeFiles) {
  const std::string snapshot = record_sample("div_zero", scratch_, 1);
  const std::string before = testing::slurp(snapshot);
  const Output o = replay("'" + snapshot + "'");
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.out.find("DIV_ZERO"), std::string::npos) << o.out;
  EXPECT_NE(o.err.find("verifying"), std::string::npos) << "progress belongs on stderr";
  EXPECT_EQ(o.out.find('\033'), std::string::npos) << "no colours outside a terminal";
  const auto json = nlohmann::json::parse(testing::slurp(scratch_ / "div_zero.json"));
  EXPECT_EQ(json["cause"], "DIV_ZERO");
  EXPECT_EQ(json["snapshot"], snapshot);
  EXPECT_NE(testing::slurp(scratch_ / "div_zero.md").find("# DIV_ZERO"), std::string::npos);
  EXPECT_EQ(testing::slurp(snapshot), before) << "an incident file is never changed";

  const auto reader = SnapshotReader::open(scratch_ / "div_zero.replay.h5");
  ASSERT_TRUE(reader.ok()) << reader.error().text();
  const auto nan = reader->read_tensor("replay/fp64/nan");
  ASSERT_TRUE(nan.ok()) << nan.error().text();
  const auto* counts = reinterpret_cast<const std::int64_t*>(nan->bytes.data());
  EXPECT_EQ(counts[json["culprit"]["index"].get<std::size_t>()], 1);

  // How far fp64 is at the op before the division, held against what the command `compare` says of it.
  const auto compared =
      nlohmann::json::parse(replay("-q compare --json '" + snapshot + "' --precision fp64").out);
  const auto off = reader->read_tensor("replay/fp64/off");
  ASSERT_TRUE(off.ok()) << off.error().text();
  const auto* distance = reinterpret_cast<const double*>(off->bytes.data());
  int held = 0;
  for (const auto& row : compared["rows"]) {
    if (row["non_finite_recorded"] != 0 || row["non_finite_other"] != 0) continue;
    EXPECT_GE(distance[row["op"].get<std::size_t>()], row["max_abs"].get<double>());
    ++held;
  }
  EXPECT_GT(held, 0);
  // The culprit's values: what it read is alike in all three runs, what it gave holds the infinity in all of
  // them.
  const std::int64_t culprit = json["culprit"]["index"].get<std::int64_t>();
  for (const char* run : {"as_recorded", "fp32", "fp64"}) {
    const auto output = reader->read_tensor("values/op " + std::to_string(culprit) + "/output/" + run);
    ASSERT_TRUE(output.ok()) << output.error().text();
    EXPECT_EQ(output->dtype, std::string(run) == "fp64" ? DType::float64 : DType::float32) << run;
    EXPECT_GT(scan(output->dtype, output->bytes.data(), output->bytes.size() / dtype_size(output->dtype))
                  .non_finite(),
              0u);
  }

  // A second time with the pattern *.h5, which matches one of the three files too.
  const Output again = replay("'" + snapshot + "' '" + (scratch_ / "div_zero.replay.h5") + "'");
  EXPECT_EQ(again.out, o.out) << again.err;
  const Output ranks =
      replay("ranks --no-files '" + snapshot + "' '" + (scratch_ / "div_zero.replay.h5") + "'");
  EXPECT_NE(ranks.err.find("replayed together where a run has two or more"), std::string::npos) << ranks.err;
}

TEST_F(Cli, JsonOnStdoutIsTheFile) {
  const std::string snapshot = record_sample("log_zero", scratch_, 1);
  const Output o = replay("--json --quiet '" + snapshot + "'");
  EXPECT_EQ(o.code, 1);
  EXPECT_TRUE(o.err.empty()) << o.err;
  EXPECT_EQ(o.out, testing::slurp(scratch_ / "log_zero.json"));
  EXPECT_EQ(nlohmann::json::parse(o.out)["reproduction"]["bit_exact"], true);
}

TEST_F(Cli, InnocentStepEndsWithZero) {
  const Output o = replay("-q " + quoted_sample("innocent_mask", 0));
  EXPECT_EQ(o.code, 0);
  EXPECT_NE(o.out.find("no harmful"), std::string::npos);
}

TEST_F(Cli, ABudgetThatIsUsedUpIsSaidAndTheCulpritStillNamed) {
  const auto v = nlohmann::json::parse(
      replay("-q --json --no-files --budget 0.000001 " + quoted_sample("fp16_overflow", 1)).out);
  EXPECT_EQ(v["culprit"]["op"], "aten::mm");
  EXPECT_TRUE(v["fix"].is_null());
  const std::string open = v["not_tested"].dump();
  EXPECT_NE(open.find("seconds left no time for (more: --budget SECONDS)"), std::string::npos) << open;
}

TEST_F(Cli, UnwritablePlaceIsAWarningAndTheVerdictStillComes) {
  const std::string snapshot = record_sample("bad_data", scratch_, 1);
  std::filesystem::create_directories(std::filesystem::path(scratch_ / "bad_data.json") / "in_the_way");
  const Output o = replay("-q --json '" + snapshot + "'");
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.err.find("warning"), std::string::npos) << o.err;
  EXPECT_EQ(nlohmann::json::parse(o.out)["cause"], "BAD_DATA");
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "bad_data.md"));
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path()))
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
}

TEST_F(Cli, SubCommandsAgreeWithEachOther) {
  const std::string snapshot = quoted_sample("fp16_overflow", 1);
  EXPECT_EQ(replay("verify " + snapshot).code, 0);
  EXPECT_EQ(replay("run " + snapshot).code, 1);
  const Output wide = replay("run --json --precision fp32 " + snapshot);
  EXPECT_EQ(wide.code, 0);
  EXPECT_EQ(nlohmann::json::parse(wide.out)["finite"], true);
  const auto narrow = nlohmann::json::parse(replay("run --json " + snapshot).out);
  EXPECT_EQ(narrow["first_inf"]["name"], "aten::mm");
  EXPECT_EQ(narrow["first_inf"]["module"], "mlp");
  EXPECT_EQ(replay("run --module mlp=fp32 --module head=fp32 " + snapshot).code, 0);
  const auto modules = nlohmann::json::parse(replay("bisect modules --json " + snapshot).out);
  EXPECT_EQ(modules["modules"], (std::vector<std::string>{"head", "mlp"}));
  const auto compared = nlohmann::json::parse(replay("compare --json --precision fp32 " + snapshot).out);
  EXPECT_EQ(compared["first_finiteness_change"], narrow["first_inf"]["op"]);
  const auto info = nlohmann::json::parse(replay("info --json " + snapshot).out);
  EXPECT_EQ(info["step"], 131);
  EXPECT_EQ(info["format_version"], "2.4");
}

TEST_F(Cli, BisectSamplesNamesTheRow) {
  const Output o = replay("bisect samples --json " + quoted_sample("log_zero", 1));
  EXPECT_EQ(nlohmann::json::parse(o.out)["poison"], (std::vector<int>{4}));
}

TEST_F(Cli, BadFilesAreRefusedInOneLine) {
  expect_one_line(replay("nowhere.h5"), 3, "nowhere.h5");
  expect_one_line(replay("verify nowhere.h5"), 3, "nowhere.h5");
  std::ofstream(scratch_ / "text.h5") << "not a snapshot";
  expect_one_line(replay("-q '" + (scratch_ / "text.h5") + "'"), 3, "text.h5");
  const std::string snapshot = record_sample("div_zero", scratch_, 1);
  std::filesystem::resize_file(snapshot, std::filesystem::file_size(snapshot) / 2);
  for (const char* command : {"", "verify ", "run ", "info ", "repro ", "bisect samples ", "compare "})
    expect_one_line(replay(std::string(command) + "-q '" + snapshot + "'"), 3, "div_zero.h5");
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "div_zero.json"));
  const std::string later = record_sample("log_zero", scratch_, 1);
  ASSERT_TRUE(seal_file(later, 4, 0, {}));
  for (const char* command : {"", "verify ", "run ", "info ", "repro ", "bisect samples ", "compare "})
    expect_one_line(replay(std::string(command) + "-q '" + later + "'"), 3,
                    "format 4.0, this program reads formats up to 3.x");
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "log_zero.json"));
}

TEST_F(Cli, ADamagedFileNeverBecomesAVerdict) {
  const std::string snapshot = record_sample("fp16_overflow", scratch_, 1);
  const std::string whole = testing::slurp(snapshot);
  int refused = 0;
  for (int part = 1; part < 10; ++part) {
    std::string damaged = whole;
    damaged[whole.size() * static_cast<std::size_t>(part) / 10] ^= 0x40;
    std::ofstream(snapshot, std::ios::binary | std::ios::trunc) << damaged;
    const Output o = replay("-q --json --no-files '" + snapshot + "'");
    refused += o.code == 3;
    if (o.code == 3) continue;
    // The bit fell into padding: then nothing that is read may have changed.
    ASSERT_EQ(o.code, 1) << o.err;
    EXPECT_EQ(nlohmann::json::parse(o.out)["cause"], "FP16_OVERFLOW") << "bit in part " << part;
  }
  EXPECT_GE(refused, 5);
}

TEST_F(Cli, BadUsageIsRefusedInOneLine) {
  const std::string snapshot = quoted_sample("div_zero", 1);
  expect_one_line(replay(""), 2, "--help");
  expect_one_line(replay("verfy " + snapshot), 2, "\"verfy\" is not a sub-command");
  expect_one_line(replay(snapshot + " --frobnicate"), 2, "--frobnicate");
  expect_one_line(replay("run " + snapshot + " --precision fp8"), 2, "one of as-recorded");
  expect_one_line(replay("run " + snapshot + " --module nope=fp32"), 2, "nope");
  expect_one_line(replay("run " + snapshot + " --module masked_mean"), 2, "masked_mean");
  expect_one_line(replay("bisect cats " + snapshot), 2, "cats");
  expect_one_line(replay("repro --op 99999 " + snapshot), 2, "99999");
}

TEST_F(Cli, HelpHasAnExampleAndVersionNamesWhatItIsBuiltFrom) {
  const Output help = replay("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("Example"), std::string::npos);
  EXPECT_NE(help.out.find("bisect"), std::string::npos);
  const Output version = replay("--version");
  EXPECT_EQ(version.code, 0);
  for (const char* part : {"nanquest", "LibTorch", "HDF5", "file format"})
    EXPECT_NE(version.out.find(part), std::string::npos) << version.out;
}

TEST_F(Cli, WhatSetMeansIsReadForPython) {
  const Output read = replay("settings -- 'skip=3,4,weight_decay=*0.5' precision=fp32");
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_EQ(read.out,
            "[[{\"key\":\"skip\",\"value\":\"3,4\",\"factor\":false,\"number\":null},"
            "{\"key\":\"weight-decay\",\"value\":\"*0.5\",\"factor\":true,\"number\":0.5}],"
            "[{\"key\":\"precision\",\"value\":\"fp32\",\"factor\":false,\"number\":null}]]\n");
  const Output refused = replay("settings -- lr");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.out.empty()) << refused.out;
  EXPECT_NE(refused.err.find("--set lr has no value"), std::string::npos) << refused.err;
}

TEST_F(Cli, ReproMakesTheDirectoryItIsGiven) {
  const std::string directory = scratch_ / "new/directory";
  const Output o = replay("repro -o '" + directory + "' " + quoted_sample("div_zero", 1));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(std::filesystem::exists(directory + "/div_zero.repro.py"));
  EXPECT_TRUE(std::filesystem::exists(directory + "/div_zero.repro.cpp"));
}

#ifdef NANQUEST_PYTHON
TEST_F(Cli, ReproInPythonShowsTheSameBadValues) {
  for (const auto& [sample, expected] : {std::pair{"fp16_overflow", "0 NaN, 256 Inf"},
                                         {"all_masked_row", "36 NaN"},
                                         {"singular_grad", "1 Inf"}}) {
    const std::string snapshot = record_sample(sample, scratch_, 1);
    ASSERT_EQ(replay("repro '" + snapshot + "'").code, 0);
    const Output o = run_program(
        std::string("'") + NANQUEST_PYTHON + "' '" + (scratch_ / (std::string(sample) + ".repro.py")) + "'",
        scratch_);
    EXPECT_EQ(o.code, 1) << o.err;
    EXPECT_NE(o.out.find(expected), std::string::npos) << o.out << o.err;
    EXPECT_NE(testing::slurp(scratch_ / (std::string(sample) + ".repro.cpp")).find("callBoxed"),
              std::string::npos);
  }
}
#endif

}  // namespace
}  // namespace nanquest
