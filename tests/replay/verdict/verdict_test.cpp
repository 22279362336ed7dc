// The contract: what is written comes back, what can't be read is named, and files that replay wrote stay
// readable.
#include <gtest/gtest.h>

#include <cstdio>

#include <cmath>
#include <functional>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "probe/snapshot/atomic_file.h"
#include "replay/verdict/confidence.h"
#include "replay/verdict/json.h"
#include "tests/replay/verdict/full_verdict.h"

namespace nanquest {
namespace {

using testing::full_verdict;
using Json = nlohmann::json;

/// Enums by name, so that one test sees them all.
template <class E>
class Words : public ::testing::Test {};
using Enums = ::testing::Types<Label, Phase, Origin, BadValue, PrecisionResult, PrecisionVerdict, Basis,
                               Agreement, ChangeKind, Scope, TrialResult>;
TYPED_TEST_SUITE(Words, Enums);

TYPED_TEST(Words, AreDistinctAndComeBack) {
  std::set<std::string_view> seen;
  ASSERT_FALSE(words<TypeParam>().empty());
  for (const Word<TypeParam>& w : words<TypeParam>()) {
    EXPECT_TRUE(seen.insert(w.word).second) << w.word;
    EXPECT_EQ(from_word<TypeParam>(w.word), w.value);
    EXPECT_EQ(word(w.value), w.word);
  }
  // Every value has a row: they are numbered without a gap.
  const auto last = static_cast<std::size_t>(words<TypeParam>().back().value);
  EXPECT_EQ(words<TypeParam>().size(), last + 1);
  EXPECT_EQ(from_word<TypeParam>("never heard"), std::nullopt);
}

TEST(Labels, EachHasAMeaningOfItsOwn) {
  std::set<std::string_view> seen;
  for (const Word<Label>& w : words<Label>()) {
    EXPECT_FALSE(meaning(w.value).empty()) << w.word;
    EXPECT_TRUE(seen.insert(meaning(w.value)).second) << w.word;
  }
}

/// A verdict for which everything speaks.
Verdict well_shown() {
  Verdict v = full_verdict();
  v.reproduction.bit_exact = true;
  v.precision.fp64 = PrecisionResult::finite;
  v.claims.front().depth = Depth::operand;
  return v;
}

TEST(Confidence, OfASpikeIsTheShareOfMadeSpikesNamedSoRightly) {
  Verdict v;
  v.on_record = "the loss was 7.9, usually 1.9 to 2.3";
  for (const Label cause : {Label::spike_data, Label::spike_state, Label::divergence, Label::precision}) {
    v.cause = cause;
    v.confidence = spike_confidence(cause);
    EXPECT_GT(v.confidence, 0.8);
    EXPECT_LT(v.confidence, 1) << "of a few dozen none was wrong, which is not never";
    int percent = 0, right = 0, named = 0;
    const std::string text = confidence_text(v);
    ASSERT_EQ(std::sscanf(text.c_str(), "%d %% (%d of %d made spikes with this label were named right)",
                          &percent, &right, &named),
              3)
        << text;
    EXPECT_NEAR(percent, 100.0 * (right + 1) / (named + 2), 0.51) << "Laplace's rule of succession";
  }
  v.on_record.clear();
  EXPECT_EQ(confidence_text(v).find("made spikes"), std::string::npos);
  EXPECT_EQ(spike_confidence(Label::unknown), 0);
}

TEST(Confidence, FallsWithEachFactThatIsMissing) {
  const double all = confidence_of(well_shown());
  EXPECT_GT(all, 0.9);
  EXPECT_LT(all, 1);
  const auto without = [](const std::function<void(Verdict&)>& change) {
    Verdict v = well_shown();
    change(v);
    return confidence_of(v);
  };
  EXPECT_LT(without([](Verdict& v) { v.claims.front().depth = Depth::size; }), all);
  EXPECT_LT(without([](Verdict& v) { v.claims.front().facts_against = {"fp64 helps"}; }), all);
  EXPECT_LT(without([](Verdict& v) { v.reproduction.bit_exact = false; }), all);
  const double unverified = without([](Verdict& v) { v.fix.reset(); });
  EXPECT_LT(unverified, all);
  const double nothing_helps = without([](Verdict& v) {
    v.fix.reset();
    v.precision.fp32 = v.precision.fp64 = PrecisionResult::non_finite;
    v.counterfactuals = {{"op in fp32", ChangeKind::precision, TrialResult::non_finite}};
  });
  EXPECT_LT(nothing_helps, unverified);
  // Where no control could be made, nothing speaks against the fix.
  const double uncontrolled = without([](Verdict& v) {
    v.fix.reset();
    v.counterfactuals.resize(1);
  });
  EXPECT_GT(uncontrolled, unverified);
  EXPECT_LT(uncontrolled, all);
  EXPECT_EQ(without([](Verdict& v) { v.cause = Label::unknown; }), 0);
  // A race is no less of one for coming back otherwise.
  EXPECT_EQ(without([](Verdict& v) { v.cause = v.claims.front().cause = Label::race; }),
            without([](Verdict& v) {
              v.cause = v.claims.front().cause = Label::race;
              v.reproduction.bit_exact = false;
            }));
}

/// The step is finite without a value from outside, whoever made it.
TEST(Confidence, AChangeThatCanNotBeRunIsNotHeldAgainstTheCause) {
  Verdict v = well_shown();
  v.fix.reset();
  v.claims.front().depth = Depth::function;
  v.precision.fp32 = v.precision.fp64 = PrecisionResult::non_finite;
  const auto with = [&](TrialResult guard) {
    v.counterfactuals = {{"a guard", ChangeKind::op, guard},
                         {"the whole step in fp64", ChangeKind::precision, TrialResult::non_finite}};
    return confidence_of(v);
  };
  EXPECT_LT(with(TrialResult::non_finite), kLeastConfidence);
  v.confidence = with(TrialResult::failed);
  EXPECT_GE(v.confidence, kLeastConfidence);
  EXPECT_NE(confidence_text(v).find("can't be run here"), std::string::npos) << confidence_text(v);
  EXPECT_LT(with(TrialResult::failed), with(TrialResult::finite));
}

TEST(Confidence, OfAValueFromOutsideIsLowerWhateverWasTried) {
  Verdict v = well_shown();
  v.cause = v.claims.front().cause = Label::bad_data;
  const double tried = confidence_of(v);
  EXPECT_LT(tried, 0.9);
  EXPECT_GE(tried, kLeastConfidence);
  settle_confidence(v);
  EXPECT_NE(confidence_text(v).find("what wrote the value is not on record"), std::string::npos);
  v.fix.reset();
  v.counterfactuals.clear();
  v.reproduction.bit_exact = false;
  EXPECT_EQ(confidence_of(v), tried);
  v.claims.front().facts_against = {"the program may have computed it"};
  EXPECT_LT(confidence_of(v), kLeastConfidence);
  // A finite number that cannot be data was shown by the step on other data.
  v = well_shown();
  v.cause = v.claims.front().cause = Label::bad_data;
  v.claims.front().depth = Depth::source;
  EXPECT_GT(confidence_of(v), 0.9);
}

TEST(Confidence, SaysWhatSpeaksForAndAgainst) {
  Verdict v = well_shown();
  settle_confidence(v);
  EXPECT_EQ(confidence_text(v),
            std::to_string(std::lround(v.confidence * 100)) +
                " %: the remedy was tried with a control, the proof says where the operands come from");
  v.claims.front().depth = Depth::size;
  settle_confidence(v);
  EXPECT_NE(confidence_text(v).find("; but the proof covers this operation alone"), std::string::npos);
  // A file holds hundredths; the number of another rule stands alone.
  v.confidence = std::round(v.confidence * 100) / 100;
  EXPECT_NE(confidence_text(v).find(" %: the remedy"), std::string::npos);
  v.confidence = 0.99;
  EXPECT_EQ(confidence_text(v), "99 %");
}

TEST(Confidence, TooLittleOfItNamesTwoClaimsAndTheExperiment) {
  Verdict v = well_shown();
  v.origin = Origin::op;
  v.claims.front().facts_against = {"the step is finite in fp16"};
  v.claims.front().depth = Depth::size;
  settle_confidence(v);
  EXPECT_EQ(v.cause, Label::unknown);
  EXPECT_EQ(v.confidence, 0);
  ASSERT_TRUE(v.likely.has_value());
  EXPECT_EQ(v.likely->cause, Label::fp16_overflow);
  EXPECT_LT(v.likely->confidence, kLeastConfidence);
  for (const char* part : {"FP16_OVERFLOW", "DOMAIN", "the step is finite in fp16"})
    EXPECT_NE(v.explanation.find(part), std::string::npos) << part;
  EXPECT_NE(v.advice.find("make one change in the program and run it again: \"op in fp32\""),
            std::string::npos)
      << v.advice;
  const auto j = Json::parse(to_json(v));
  EXPECT_EQ(j["cause"], "UNKNOWN");
  EXPECT_EQ(j["likely"]["cause"], "FP16_OVERFLOW");
  EXPECT_EQ(j["claims"][0]["depth"], "size");
  const auto back = verdict_from_json(to_json(v));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_TRUE(differences(v, *back).empty());
}

TEST(VerdictJson, HoldsEveryFieldOfTheContract) {
  const auto j = Json::parse(to_json(full_verdict()));
  EXPECT_EQ(j["format"], "nanquest.verdict");
  EXPECT_EQ(j["version"], 2);
  EXPECT_EQ(j["claims"][1]["cause"], "DOMAIN");
  EXPECT_EQ(j["claims"][1]["against"][0], "no argument is negative");
  EXPECT_EQ(j["blame"]["set"][0]["index"], 412);
  EXPECT_EQ(j["blame"]["intended"][0]["tensor"], "mask");
  EXPECT_EQ(j["root"]["cause"], "DIVERGENCE");
  EXPECT_EQ(j["root"]["scope"], "run");
  EXPECT_EQ(j["root"]["verified"], true);
  EXPECT_EQ(j["root"]["cured"], (std::vector<std::string>{"lr=*0.5", "clip=1"}));
  EXPECT_EQ(j["root"]["tried"].size(), 3u);
  EXPECT_EQ(j["root"]["file"], "step-00000131.r0.rehearsal.json");
  EXPECT_EQ(j["step"], 131);
  EXPECT_EQ(j["reproduction"]["bit_exact"], true);
  EXPECT_EQ(j["reproduction"]["basis"], "survivors");
  EXPECT_EQ(j["culprit"]["op"], "aten::mm");
  EXPECT_EQ(j["culprit"]["value"], "+inf");
  EXPECT_EQ(j["culprit"]["first"], (std::vector<int>{0, 3}));
  EXPECT_EQ(j["phase"], "backward");
  EXPECT_EQ(j["origin"], "parameter");
  EXPECT_EQ(j["cause"], "FP16_OVERFLOW");
  EXPECT_EQ(j["confidence"], 0.99);
  EXPECT_EQ(j["precision"]["fp64"], "non_finite");
  EXPECT_EQ(j["precision"]["verdict"], "delayed");
  EXPECT_EQ(j["evidence"][1]["steps"], 3);
  EXPECT_TRUE(j["evidence"][1]["series"][1].is_null());
  EXPECT_EQ(j["counterfactuals"][1]["kind"], "placebo");
  EXPECT_EQ(j["counterfactuals"][1]["result"], "non_finite");
  EXPECT_EQ(j["fix"]["verified"], true);
  EXPECT_EQ(j["samples"]["poison"], (std::vector<int>{17}));
  EXPECT_EQ(j["ranks"]["arrived_by"]["op"], "c10d::allreduce_");
  EXPECT_EQ(j["ranks"]["first"]["tensor"], "mean");
  EXPECT_EQ(j["ranks"]["missing"], (std::vector<int>{1}));
  EXPECT_EQ(j["ranks"]["rows"], (std::vector<int>{3}));
}

TEST(VerdictJson, WhatIsNotThereIsNull) {
  Verdict v = full_verdict();
  v.fix.reset();
  v.reproduction.first_mismatch.reset();
  v.culprit.node.clear();
  v.precision.verdict.reset();
  auto j = Json::parse(to_json(v));
  EXPECT_TRUE(j["fix"].is_null());
  EXPECT_TRUE(j["reproduction"]["first_mismatch"].is_null());
  EXPECT_TRUE(j["culprit"]["node"].is_null());
  EXPECT_TRUE(j["precision"]["verdict"].is_null());
  v.found = false;
  j = Json::parse(to_json(v));
  EXPECT_TRUE(j["culprit"].is_null() && j["origin"].is_null() && j["cause"].is_null());
}

TEST(VerdictJson, ComesBackTheSame) {
  const auto back = verdict_from_json(to_json(full_verdict()));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(to_json(back.value()), to_json(full_verdict()));
  EXPECT_EQ(back->ranks->first->origin, Origin::buffer);
  EXPECT_EQ(back->unseen.names, full_verdict().unseen.names);
  EXPECT_TRUE(back->unseen.loss && back->unseen.ops == 3 && back->unseen.gradients == 4);
  EXPECT_TRUE(std::isnan(back->evidence[1].series[1]));
}

TEST(VerdictJson, AnOpInsideAnotherSaysSo) {
  Verdict v = full_verdict();
  EXPECT_FALSE(Json::parse(to_json(v))["culprit"].contains("inside"));
  v.culprit.inside = "nanquest::compiled_region";
  const auto back = verdict_from_json(to_json(v));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->culprit.inside, v.culprit.inside);
}

TEST(VerdictJson, APlaceAmongProcessesSaysSo) {
  Verdict v = full_verdict();
  EXPECT_FALSE(Json::parse(to_json(v))["culprit"].contains("part"));
  EXPECT_FALSE(Json::parse(to_json(v))["ranks"]["first"].contains("pass"));
  v.culprit.part = v.ranks->first->part = "rows 0 to 15 of 32";
  v.culprit.pass = v.ranks->first->pass = "micro-batch 3 of 4, stage 2 of 2";
  const auto back = verdict_from_json(to_json(v));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->culprit.part, v.culprit.part);
  EXPECT_EQ(back->culprit.pass, v.culprit.pass);
  EXPECT_EQ(back->ranks->first->part, v.culprit.part);
  EXPECT_EQ(back->ranks->first->pass, v.culprit.pass);
}

/// The full verdict with one field changed, as a file.
std::string with(const std::string& pointer, const Json& value) {
  Json j = Json::parse(to_json(full_verdict()));
  j[Json::json_pointer(pointer)] = value;
  return j.dump();
}

TEST(VerdictJson, EveryFieldIsCheckedAndNamed) {
  const std::pair<const char*, Json> wrong[] = {
      {"/step", "x"},
      {"/rank", 1.5},
      {"/rank", 5000000000},
      {"/found", 1},
      {"/phase", "sideways"},
      {"/origin", 7},
      {"/cause", "NEVER_HEARD"},
      {"/confidence", 3.5},
      {"/confidence", "high"},
      {"/reproduction", 3},
      {"/reproduction/basis", "guess"},
      {"/reproduction/first_mismatch", "x"},
      {"/reproduction/failed_ops", "x"},
      {"/reproduction/elsewhere", 7},
      {"/reproduction/elsewhere/bound", "x"},
      {"/reproduction/elsewhere/outside", 1.5},
      {"/culprit/index", "x"},
      {"/culprit/count", -4},
      {"/culprit/value", "big"},
      {"/culprit/first", Json::array({1, "x"})},
      {"/culprit/stack", "line"},
      {"/precision/fp32", "maybe"},
      {"/precision/verdict", "maybe"},
      {"/evidence", 7},
      {"/evidence/0", 7},
      {"/evidence/1/series", "up"},
      {"/counterfactuals/1/kind", "magic"},
      {"/counterfactuals/1/result", "fine"},
      {"/fix/verified", "yes"},
      {"/fix/scope", "world"},
      {"/samples/poison", 3},
      {"/not_tested", Json::array({7})},
      {"/ranks/world_size", "two"},
      {"/ranks/first/rank", "two"},
      {"/ranks/files/two", "x.h5"},
  };
  for (const auto& [pointer, value] : wrong) {
    const auto v = verdict_from_json(with(pointer, value));
    ASSERT_FALSE(v.ok()) << pointer;
    EXPECT_EQ(v.error().code, ErrorCode::bad_file);
    const std::string field = std::string(pointer).substr(std::string(pointer).rfind('/') + 1);
    const std::string part = std::isdigit(field[0]) ? "[" + field + "]" : field;
    EXPECT_NE(v.error().text().find(part), std::string::npos) << pointer << ": " << v.error().text();
    EXPECT_EQ(v.error().text().find('\n'), std::string::npos);
  }
  const auto nested = verdict_from_json(with("/counterfactuals/1/kind", "magic"));
  EXPECT_NE(nested.error().text().find("counterfactuals[1].kind: \"magic\" is not one of precision, data"),
            std::string::npos)
      << nested.error().text();
}

TEST(VerdictJson, ForeignFilesAndOtherVersionsAreRefusedInOneLine) {
  for (const char* text : {"", "[]", "{", "{\"format\": \"x\"}", "{\"format\": \"nanquest.verdict\"}"}) {
    const auto v = verdict_from_json(text);
    ASSERT_FALSE(v.ok()) << text;
    EXPECT_EQ(v.error().code, ErrorCode::bad_file);
    EXPECT_EQ(v.error().text().find('\n'), std::string::npos);
  }
  const auto newer = verdict_from_json("{\"format\": \"nanquest.verdict\", \"version\": 3}");
  ASSERT_FALSE(newer.ok());
  EXPECT_NE(newer.error().text().find("newer"), std::string::npos) << newer.error().text();
}

TEST(VerdictJson, UnknownFieldsAreIgnoredAndMissingOnesKeepTheirDefaults) {
  EXPECT_TRUE(verdict_from_json(with("/news", Json::object({{"a", {1, 2}}}))).ok());
  EXPECT_TRUE(verdict_from_json(with("/culprit/news", 7)).ok());
  const auto bare = verdict_from_json("{\"format\": \"nanquest.verdict\", \"version\": 1}");
  ASSERT_TRUE(bare.ok()) << bare.error().text();
  EXPECT_TRUE(differences(*bare, Verdict{}).empty());
}

TEST(Golden, AVerdictOfVersion1IsStillRead) {
  const auto v = read_verdict(NANQUEST_GOLDEN_VERDICTS "/../verdict-1.json");
  ASSERT_TRUE(v.ok()) << v.error().text();
  EXPECT_EQ(v->cause, Label::log_zero);
  EXPECT_FALSE(v->blame.tried);
  EXPECT_TRUE(v->claims.empty());
  EXPECT_FALSE(v->root.has_value());
}

TEST(VerdictJson, AFileIsNamedInItsErrors) {
  const auto missing = read_verdict("nowhere/step.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().text().find("nowhere/step.json"), std::string::npos);
}

TEST(Differences, NameTheFieldAndBothValues) {
  EXPECT_TRUE(differences(full_verdict(), full_verdict()).empty());
  Verdict other = full_verdict();
  other.culprit.op = "aten::bmm";
  other.cause = Label::domain;
  other.evidence.pop_back();
  const auto found = differences(full_verdict(), other);
  std::set<std::string> fields;
  for (const Difference& d : found) fields.insert(d.field);
  EXPECT_TRUE(fields.count("/culprit/op") && fields.count("/cause") && fields.count("/evidence/1/name"));
  EXPECT_EQ(found[0].field, "/culprit/op");
  EXPECT_EQ(found[0].first, "\"aten::mm\"");
  EXPECT_EQ(found[0].second, "\"aten::bmm\"");
}

TEST(Golden, VerdictsThatReplayWroteAreReadAndWrittenWithoutALoss) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(NANQUEST_GOLDEN_VERDICTS)) {
    const auto verdict = read_verdict(entry.path().string());
    ASSERT_TRUE(verdict.ok()) << verdict.error().text();
    EXPECT_EQ(to_json(*verdict), *read_whole_file(entry.path().string())) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 9);
}

}  // namespace
}  // namespace nanquest
