#include "replay/report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "replay/verdict/json.h"
#include "replay/verdict/sentences.h"
#include "tests/replay/verdict/full_verdict.h"

namespace nanquest {
namespace {

using testing::full_verdict;

TEST(Report, TextAnswersTheFiveQuestionsWithinItsWidth) {
  const std::string text = to_text(full_verdict(), {.colour = false, .width = 80});
  for (const char* part :
       {"FP16_OVERFLOW at step 131", "17 +Inf (a value left",
        "aten::mm in blocks.3.mlp (backward, MmBackward0), op 412,", "fp16 ends at 65504", "Keep it in fp32.",
        "99 %", "only delays it: the values keep growing (fp32 finite,", "came back bit for bit",
        "amax: 1.2e+05 (limit 65504)", "still non-finite", "the root cause"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(to_text(full_verdict(), {.colour = true}).find('\033'), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

/// A terminal shows it without scrolling; what stands behind it is asked for with --full.
TEST(Report, ShortIsFifteenLinesAtMostAndHoldsEveryAnswerInWholeSentences) {
  std::vector<Verdict> verdicts = {full_verdict()};
  for (const auto& entry : std::filesystem::directory_iterator(NANQUEST_GOLDEN_VERDICTS)) {
    const auto verdict = read_verdict(entry.path().string());
    ASSERT_TRUE(verdict) << verdict.error().text();
    verdicts.push_back(*verdict);
  }
  for (Verdict& v : verdicts) {
    v.root.reset();
    v.ranks.reset();
    const std::string text = to_text(v, {.full = false, .next = "nanquest-viewer step.h5"});
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), v.poison.empty() ? 15 : 16) << text;
    EXPECT_EQ(text.find("- "), std::string::npos) << "no list of evidence or trials\n" << text;
    if (!v.found) continue;
    for (const char* label : {"where  ", "why  ", "do  ", "tried  ", "confidence  ", "next  "})
      EXPECT_NE(text.find(label), std::string::npos) << label << "\n" << text;
    EXPECT_GT(to_text(v).size(), text.size());
  }
}

TEST(Report, AFiniteStepThatIsNoFixSaysWhy) {
  Verdict v = full_verdict();
  v.counterfactuals.push_back({.change = "x computed in fp32", .result = TrialResult::finite});
  v.counterfactuals.back().not_a_fix = "3 ops now give zeros alone where fp64 gives numbers";
  const std::string line =
      "x computed in fp32: finite, but 3 ops now give zeros alone where fp64 gives numbers";
  EXPECT_NE(to_text(v, {.width = 400}).find(line), std::string::npos) << to_text(v, {.width = 400});
  const auto back = verdict_from_json(to_json(v));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->counterfactuals.back().not_a_fix, v.counterfactuals.back().not_a_fix);
}

TEST(Report, NothingFoundIsOneLineNotAVerdict) {
  Verdict v;
  v.step = 4;
  v.found = false;
  v.reproduction.bit_exact = true;
  EXPECT_NE(to_text(v).find("no harmful"), std::string::npos);
}

/// The same words in every form, whether or not replay found out why.
TEST(Report, WhyAFiniteStepIsOnRecordIsOneText) {
  for (const bool found : {false, true}) {
    Verdict v;
    v.step = 340;
    v.found = found;
    v.on_record = "the loss was 7.9, usually 1.9 to 2.3";
    v.cause = found ? Label::spike_data : Label::unknown;
    v.explanation = "Without sample 5 the step is in its usual range.";
    v.counterfactuals = {{"sample 5 as step 339 had it", ChangeKind::data, TrialResult::in_range}};
    v.counterfactuals.back().measured = "loss 2.1";
    for (const std::string& text : {to_text(v, {.width = 400}), to_text(v, {.width = 400, .full = false}),
                                    to_brief(v), to_markdown(v), to_json(v)}) {
      EXPECT_NE(text.find(v.on_record), std::string::npos) << text;
      EXPECT_EQ(text.find("bad elements"), std::string::npos) << text;
      EXPECT_EQ(text.find("no op"), std::string::npos) << text;
    }
    const auto back = verdict_from_json(to_json(v));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->on_record, v.on_record);
    EXPECT_EQ(back->counterfactuals.front().result, TrialResult::in_range);
    EXPECT_EQ(back->counterfactuals.front().measured, "loss 2.1");
  }
}

TEST(Report, AStepThatWasNotSeenWholeIsNeverCalledGood) {
  Verdict v;
  v.step = 4;
  v.found = false;
  v.unseen = {5, {{"aten::mul", 3}, {"aten::add_", 2}}, true, 1};
  for (const std::string& text : {to_text(v, {.colour = false, .width = 400}), to_brief(v), to_markdown(v)}) {
    EXPECT_EQ(text.find("in this step"), std::string::npos) << text;
    EXPECT_NE(text.find("5 ops (aten::mul (3), aten::add_ (2)), the loss and 1 gradient"), std::string::npos)
        << text;
    EXPECT_NE(text.find("Run the step"), std::string::npos) << text;
  }
}

TEST(Report, OnWhichBasisAReplayIsTheRecordedStep) {
  Reproduction r;
  EXPECT_EQ(r.agreement(), Agreement::not_compared);
  r.outputs_compared = 10;
  r.mismatched = 4;
  EXPECT_EQ(r.agreement(), Agreement::differs);
  EXPECT_EQ(reproduction_text(r), "4 of 10 written outputs differ");
  r.elsewhere = {"cuda:0", "cpu", 0.03125, 0.0004, 0};
  EXPECT_EQ(r.agreement(), Agreement::within_bounds);
  EXPECT_EQ(
      reproduction_text(r),
      "the step came back within bounds: all 10 written outputs are within 0.031 of the recording, in norm "
      "and largest value, with the same NaN and Inf (6 bit for bit, the others at most 0.0004 off); recorded "
      "on cuda:0, replayed on cpu");
  r.elsewhere->outside = 1;
  r.first_mismatch = 7;
  EXPECT_EQ(r.agreement(), Agreement::differs);
  EXPECT_EQ(
      reproduction_text(r),
      "4 of 10 written outputs differ, 1 of them not even within 0.031 of the recording, first at op 7; "
      "recorded on cuda:0, replayed on cpu");
  r.elsewhere->outside = 0;
  r.failed_ops = 1;  // what it would have made was compared with nothing
  EXPECT_EQ(r.agreement(), Agreement::differs);
  r = {};
  r.outputs_compared = 10;
  r.bit_exact = true;
  EXPECT_EQ(r.agreement(), Agreement::bit_for_bit);
}

TEST(Report, MarkdownTablesSurviveBarsInValues) {
  Verdict v = full_verdict();
  v.evidence[0].name = "max |x|";
  const std::string text = to_markdown(v);
  EXPECT_NE(text.find("| max \\|x\\| | 1.2e+05 | 65504 |"), std::string::npos) << text;
  EXPECT_NE(text.find("## Not tested"), std::string::npos);
}

TEST(Report, WhatAWiderFormatDidIsSaidInWords) {
  Verdict v = full_verdict();
  v.precision.fp32 = PrecisionResult::non_finite;
  v.precision.fp64 = PrecisionResult::not_run;
  EXPECT_NE(precision_text(v).find("(fp32 not finite, fp64 not tried)"), std::string::npos)
      << precision_text(v);
}

}  // namespace
}  // namespace nanquest
