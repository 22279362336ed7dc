#include "replay/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace nanquest {
namespace {

Verdict full_verdict() {
  Verdict v;
  v.snapshot = "run/incidents/step-00000131.r0.h5";
  v.step = 131;
  v.reproduction = {true, "every_output", 752, 0, 0, std::nullopt, {"num_threads: recorded 8, here 2"}};
  v.phase = "forward";
  v.culprit = {"aten::mm", 412, "", "blocks.3.mlp", "", "+inf", 17, {0, 3}, {"mlp.cpp:12 forward"}};
  v.cause = "FP16_OVERFLOW";
  v.confidence = 0.987654;
  v.explanation = "aten::mm computes 1.2e+05, but fp16 ends at 65504.";
  v.precision = {"finite", "finite", "delayed"};
  v.evidence = {{"amax", "1.2e+05", "65504", {}}, {"growth", "up", "0", {1, std::nan(""), 4}}};
  v.counterfactuals = {{"op in fp32", "precision", "step", "finite", 1},
                       {"other op in fp32", "placebo", "step", "non_finite", 1}};
  v.fix = Fix{"op in fp32", "Keep it in fp32.", "step", true, true, true};
  v.poison = {17};
  v.poison_ids = {"a.txt:\xff|9"};
  v.batch = 32;
  v.not_tested = {"the root cause"};
  v.ranks = Ranks{4,
                  false,
                  "c10d::allreduce_",
                  400,
                  RankCulprit{2, "aten::log", "head", 17, "step-00000131.r2.h5"},
                  {{2, "step-00000131.r2.h5"}},
                  {1, 3},
                  "Rank 2 was first: aten::log in head."};
  return v;
}

TEST(Report, JsonHoldsEveryFieldOfTheContract) {
  const auto j = nlohmann::json::parse(to_json(full_verdict()));
  EXPECT_EQ(j["format"], "nanquest.verdict");
  EXPECT_EQ(j["version"], 1);
  EXPECT_EQ(j["step"], 131);
  EXPECT_EQ(j["reproduction"]["bit_exact"], true);
  EXPECT_TRUE(j["reproduction"]["first_mismatch"].is_null());
  EXPECT_EQ(j["culprit"]["op"], "aten::mm");
  EXPECT_TRUE(j["culprit"]["node"].is_null());
  EXPECT_EQ(j["culprit"]["first"], (std::vector<int>{0, 3}));
  EXPECT_EQ(j["confidence"], 0.99);
  EXPECT_EQ(j["precision"]["verdict"], "delayed");
  EXPECT_EQ(j["evidence"][1]["steps"], 3);
  EXPECT_TRUE(j["evidence"][1]["series"][1].is_null());
  EXPECT_EQ(j["counterfactuals"][1]["kind"], "placebo");
  EXPECT_EQ(j["fix"]["verified"], true);
  EXPECT_EQ(j["samples"]["poison"], (std::vector<int>{17}));
  EXPECT_EQ(j["ranks"]["arrived_by"]["op"], "c10d::allreduce_");
  EXPECT_EQ(j["ranks"]["first"]["rank"], 2);
  EXPECT_EQ(j["ranks"]["missing"], (std::vector<int>{1, 3}));
  Verdict none = full_verdict();
  none.fix.reset();
  EXPECT_TRUE(nlohmann::json::parse(to_json(none))["fix"].is_null());
}

TEST(Report, JsonComesBackTheSame) {
  const auto back = verdict_from_json(to_json(full_verdict()));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(to_json(back.value()), to_json(full_verdict()));
}

TEST(Report, ForeignAndBrokenJsonIsRefusedInOneLine) {
  for (const char* text :
       {"", "[]", "{\"format\": \"x\"}", "{\"format\": \"nanquest.verdict\", \"version\": 2}",
        "{\"format\": \"nanquest.verdict\", \"version\": 1, \"step\": \"x\"}"}) {
    const auto v = verdict_from_json(text);
    ASSERT_FALSE(v.ok()) << text;
    EXPECT_EQ(v.error().code, ErrorCode::bad_file);
    EXPECT_EQ(v.error().text().find('\n'), std::string::npos);
  }
  EXPECT_TRUE(verdict_from_json("{\"format\": \"nanquest.verdict\", \"version\": 1, \"news\": {}}").ok());
}

TEST(Report, TextAnswersTheFiveQuestionsWithinItsWidth) {
  const std::string text = to_text(full_verdict(), {.colour = false, .width = 80});
  for (const char* part : {"FP16_OVERFLOW at step 131", "17 +Inf",
                           "aten::mm in blocks.3.mlp (forward), op 412", "fp16 ends at 65504",
                           "Keep it in fp32.", "99 %", "bit for bit", "still non-finite", "the root cause"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(to_text(full_verdict(), {.colour = true}).find('\033'), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Report, NothingFoundIsOneLineNotAVerdict) {
  Verdict v;
  v.step = 4;
  v.found = false;
  v.reproduction.bit_exact = true;
  EXPECT_NE(to_text(v).find("no harmful"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(to_json(v))["culprit"].is_null());
}

TEST(Report, MarkdownTablesSurviveBarsInValues) {
  Verdict v = full_verdict();
  v.evidence[0].name = "max |x|";
  const std::string text = to_markdown(v);
  EXPECT_NE(text.find("| max \\|x\\| | 1.2e+05 | 65504 |"), std::string::npos) << text;
  EXPECT_NE(text.find("## Not tested"), std::string::npos);
}

TEST(Report, FilesAppearWholeOrNotAtAll) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("nanquest_report_test" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory / "taken");
  const std::string path = (directory / "v.json").string();
  ASSERT_TRUE(write_text_file(path, "one").ok());
  ASSERT_TRUE(write_text_file(path, "two").ok());
  std::ifstream in(path);
  std::string text;
  in >> text;
  EXPECT_EQ(text, "two");
  std::filesystem::create_directories(directory / "taken" / "x");
  const Status refused = write_text_file((directory / "taken").string(), "three");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::io);
  EXPECT_FALSE(write_text_file((directory / "nowhere" / "v.json").string(), "x").ok());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) files += entry.exists();
  EXPECT_EQ(files, 2) << "a temporary file was left behind";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace nanquest
