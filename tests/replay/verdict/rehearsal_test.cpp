// The rule that says what cures a run, on runs made by hand; the file there and back.
#include "replay/verdict/rehearsal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace nanquest {
namespace {

constexpr std::int64_t kFirst = 40, kBad = 100;

/// Falls from 4 by `slope` a step, one batch 0.01 above the next one, until step `to`.
RehearsedRun run_of(RehearsedKind kind, const std::string& change, std::int64_t to, bool bad,
                    double slope = 0.01) {
  RehearsedRun run{.kind = kind, .change = change, .first_step = kFirst};
  for (std::int64_t step = kFirst; step < to; ++step)
    run.losses.push_back(4 - slope * static_cast<double>(step - kFirst) + (step % 2 == 0 ? 0.01 : 0));
  if (bad) run.failed_step = to;
  if (bad) run.failure = "the loss is NaN";
  return run;
}

RehearsedRun change(const std::string& what, std::int64_t to, bool bad, double slope = 0.01) {
  return run_of(RehearsedKind::change, what, to, bad, slope);
}

/// Unchanged it goes bad at step 100, two placebos at 99 and 103; then `changes`.
Rehearsal rehearsal(const std::vector<RehearsedRun>& changes) {
  Rehearsal r{.step = kBad, .began = "state-40", .runs = {run_of(RehearsedKind::unchanged, "", kBad, true)}};
  r.runs.push_back(run_of(RehearsedKind::placebo, "the last bit of w[1], seed 1", 99, true, 0.0100001));
  r.runs.push_back(run_of(RehearsedKind::placebo, "the last bit of w[2], seed 2", 103, true, 0.0099999));
  r.runs.insert(r.runs.end(), changes.begin(), changes.end());
  judge(r);
  return r;
}

const RehearsedRun& last(const Rehearsal& r) {
  return r.runs.back();
}

TEST(Rehearsal, AChangeThatOutlivesAndLearnsCures) {
  const Rehearsal r = rehearsal({change("lr=*0.5", 168, false)});
  EXPECT_EQ(r.failed_steps, (std::vector<std::int64_t>{99, 103}));
  EXPECT_TRUE(last(r).cures);
  EXPECT_EQ(last(r).remark, "cures, verified for the run");
  ASSERT_TRUE(r.root);
  EXPECT_EQ(r.root->cause, "DIVERGENCE");
  EXPECT_EQ(r.root->change, "lr=*0.5");
  EXPECT_EQ(r.root->steps, 64) << "steps 104 to 167";
  EXPECT_TRUE(r.root->verified);
  // 83 to 98: the mean of 16 steps of a line, half of them 0.01 higher.
  EXPECT_NEAR(last(r).mean, 4 - 0.01 * (90.5 - 40) + 0.005, 1e-9);
  EXPECT_FALSE(rehearsal({change("lr=*0.5", 167, false)}).root->verified) << "63 are too few to be sure";
}

TEST(Rehearsal, AStepThatWasLeftOutCountsInNoMean) {
  RehearsedRun skipped = change("skip=90", 168, false);
  skipped.losses[90 - kFirst] = std::nan("");
  const Rehearsal r = rehearsal({skipped});
  EXPECT_TRUE(last(r).cures) << last(r).remark;
  double sum = 0;
  for (std::int64_t step = 83; step < 99; ++step)
    if (step != 90) sum += skipped.losses[static_cast<std::size_t>(step - kFirst)];
  EXPECT_NEAR(last(r).mean, sum / 15, 1e-9);
}

TEST(Rehearsal, StepsOnBatchesThatCameBeforeCureAndVerifyNothing) {
  Rehearsal r = rehearsal({change("lr=*0.5", 180, false)});
  r.again = 101;
  judge(r);
  EXPECT_EQ(last(r).remark, "cures, as far as it went");
  ASSERT_TRUE(r.root);
  EXPECT_FALSE(r.root->verified);
  EXPECT_EQ(r.root->steps, 76);
  EXPECT_NE(r.root->explanation.find("on the batches of the steps before once more"), std::string::npos)
      << r.root->explanation;
  r.again = 168;  // 104 to 167 were new
  judge(r);
  EXPECT_TRUE(r.root->verified);
  const Result<Rehearsal> read = rehearsal_from_json(to_json(r));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->again, r.again);
  EXPECT_NE(rehearsal_text(r).find("batches       from step 168 on"), std::string::npos) << rehearsal_text(r);
}

TEST(Rehearsal, WhyNoChangeCouldBeTriedIsSaid) {
  RehearsedRun short_one = change("lr=*0.5", kFirst, false);
  short_one.not_tried = "the tape is too short";
  EXPECT_EQ(rehearsal({short_one}).not_tried, "no change was tried: the tape is too short");
}

TEST(Rehearsal, ARunThatEndedItselfSaysWhy) {
  RehearsedRun other = change("lr=*0.5", 105, false);
  other.ended_itself = true;
  other.failure = "at step 105 the program would have decided otherwise";
  EXPECT_EQ(last(rehearsal({other})).remark, other.failure);
}

TEST(Rehearsal, WhereThereIsADoubtThereIsNoCure) {
  RehearsedRun skipped = change("skip=100", 180, false);
  skipped.doubt = "the batch is well on other weights";
  const Rehearsal r = rehearsal({skipped, change("lr=*0.5", 180, false)});
  EXPECT_FALSE(r.runs[3].cures);
  EXPECT_EQ(r.runs[3].remark, skipped.doubt);
  EXPECT_EQ(r.root->cause, "DIVERGENCE");
}

TEST(Rehearsal, ResetMomentsThatAloneCureAreABadState) {
  EXPECT_EQ(rehearsal({change("lr=*0.5", 101, true), change("moments=reset", 180, false)}).root->cause,
            "BAD_STATE");
  EXPECT_EQ(rehearsal({change("moments=reset", 180, false), change("lr=*0.5", 180, false)}).root->cause,
            "DIVERGENCE");
}

TEST(Rehearsal, SixteenStepsMoreThanTheLatestPlacebo) {
  EXPECT_TRUE(last(rehearsal({change("lr=*0.5", 119, true)})).outlives);
  const Rehearsal r = rehearsal({change("lr=*0.5", 118, true)});
  EXPECT_FALSE(last(r).outlives);
  EXPECT_EQ(last(r).remark, "goes bad too");
  EXPECT_EQ(r.root->cause, "UNKNOWN");
  EXPECT_EQ(r.root->tried, std::vector<std::string>{"lr=*0.5"});
  EXPECT_EQ(r.root->explanation,
            "unchanged the run goes bad at step 100 and so do 2 placebos by step 103; nothing of what was "
            "tried cures it");
}

TEST(Rehearsal, WhatOnlySurvivesIsNoCure) {
  // Learns a little, but is above the placebos where they still lived.
  const Rehearsal slow = rehearsal({change("lr=*0.1", 180, false, 0.005)});
  EXPECT_EQ(last(slow).remark, "stays finite, but learns less");
  // A hair above them is what batches differ by.
  EXPECT_TRUE(last(rehearsal({change("lr=*0.9", 180, false, 0.00995)})).cures);
  RehearsedRun climbing = change("precision=fp32", 180, false);
  for (std::size_t i = 62; i < climbing.losses.size(); ++i) climbing.losses[i] = 6;
  const Rehearsal r = rehearsal({climbing});
  EXPECT_FALSE(last(r).learns);
  EXPECT_EQ(last(r).remark, "stays finite, but its loss climbs");
  EXPECT_EQ(r.root->cause, "UNKNOWN");
}

TEST(Rehearsal, TheRootIsTheCheapestThatCures) {
  const Rehearsal r =
      rehearsal({change("lr=*0.5", 180, false), change("lr=*0.1", 180, false), change("skip=100", 180, false),
                 change("clip=0.1,precision=fp32", 180, false)});
  EXPECT_EQ(r.root->cause, "BAD_DATA");
  EXPECT_EQ(r.root->cured.size(), 4u);
  EXPECT_EQ(rehearsal({change("lr=*0.1", 180, false), change("lr=*0.5", 180, false)}).root->change,
            "lr=*0.1");
  EXPECT_EQ(rehearsal({change("lr=*0.1", 180, false), change("amp-dtype=fp32", 180, false)}).root->cause,
            "PRECISION");
  EXPECT_EQ(rehearsal({change("seed=7", 180, false)}).root->cause, "UNKNOWN")
      << "what that says nobody knows";
}

TEST(Rehearsal, AWiderFormatOnlyOutlastsWeightsThatGrow) {
  const auto grown = [](std::vector<RehearsedRun> changes) {
    Rehearsal r = rehearsal(std::move(changes));
    r.growth = "weight_amax of mlp grew from 1.4 to 3.4 over the last 64 steps";
    judge(r);
    return *r.root;
  };
  const RehearsedRoot both = grown({change("precision=fp32", 180, false), change("lr=*0.1", 180, false)});
  EXPECT_EQ(both.cause, "DIVERGENCE");
  EXPECT_EQ(both.change, "lr=*0.1");
  EXPECT_NE(
      both.explanation.find("mlp grew from 1.4 to 3.4 over the last 64 steps, which a wider format only"),
      std::string::npos);
  // Where nothing else cures, the format is what is left.
  EXPECT_EQ(grown({change("precision=fp32", 180, false), change("lr=*0.1", 100, true)}).cause, "PRECISION");
  EXPECT_EQ(grown({change("precision=fp32", 180, false), change("skip=100", 180, false)}).cause, "PRECISION");
  EXPECT_EQ(grown({change("precision=fp32", 180, false), change("skip=100", 180, false),
                   change("lr=*0.1", 180, false)})
                .cause,
            "BAD_DATA");
}

TEST(Rehearsal, NothingIsClaimedWhereTheFailureIsNotCertain) {
  const auto doubt = [](Rehearsal r) {
    r.runs.push_back(change("lr=*0.5", 180, false));
    judge(r);
    EXPECT_FALSE(r.root);
    EXPECT_FALSE(r.runs.back().cures);
    return r.not_tried;
  };
  Rehearsal well = rehearsal({});
  EXPECT_EQ(well.not_tried, "no change was tried");
  well.runs[0] = run_of(RehearsedKind::unchanged, "", 165, false);
  EXPECT_EQ(doubt(well), "the unchanged run does not go bad at step 100: it is finite until step 164");
  Rehearsal elsewhere = rehearsal({});
  elsewhere.runs[0] = run_of(RehearsedKind::unchanged, "", 120, true);
  EXPECT_EQ(doubt(elsewhere), "the unchanged run goes bad at step 120, not at step 100 as recorded");
  Rehearsal placebo = rehearsal({});
  placebo.runs[2] = run_of(RehearsedKind::placebo, "the last bit of w[2], seed 2", 165, false, 0.0099999);
  EXPECT_EQ(doubt(placebo),
            "with the last bit of w[2], seed 2 changed it does not go bad: the failure hangs on a last bit");
  Rehearsal other = rehearsal({});
  other.runs[2] = run_of(RehearsedKind::placebo, "the last bit of w[2], seed 2", 80, false);
  other.runs[2].ended_itself = true;
  other.runs[2].failure = "the program would have decided otherwise";
  EXPECT_EQ(doubt(other),
            "with the last bit of w[2], seed 2 changed the run ends before step 100: the program would have "
            "decided otherwise");
  Rehearsal broken = rehearsal({});
  broken.runs[0].not_tried = "no memory";
  EXPECT_EQ(doubt(broken), "the unchanged run could not be made: no memory");
  EXPECT_EQ(doubt(Rehearsal{}), "there is no unchanged run");
}

TEST(Rehearsal, APlaceboThatChangedNothingCountsAsNone) {
  Rehearsal r = rehearsal({change("lr=*0.5", 180, false), change("init-scale=2", 100, true)});
  r.runs[2] = run_of(RehearsedKind::placebo, "the last bit of w[0], seed 2", kBad, true);
  judge(r);
  EXPECT_EQ(r.failed_steps, (std::vector<std::int64_t>{99, 100}));
  EXPECT_EQ(r.runs[2].remark, "changed nothing");
  EXPECT_EQ(last(r).remark, "changed nothing") << "bit for bit the unchanged run";
  // One step later is what a guard sees of a spoiled update.
  r.step = 99;
  judge(r);
  EXPECT_TRUE(r.root);
}

TEST(Rehearsal, WithoutStepsBeforeTheFailureItIsLearningThatCounts) {
  Rehearsal r{.step = kFirst,
              .runs = {run_of(RehearsedKind::unchanged, "", kFirst, true), change("lr=*0.5", 120, false)}};
  judge(r);
  EXPECT_TRUE(r.runs[1].cures);
  EXPECT_TRUE(std::isnan(r.runs[1].mean));
  r.runs[1] = change("lr=*0.5", 120, false, -0.01);
  judge(r);
  EXPECT_FALSE(r.runs[1].cures);
}

TEST(Rehearsal, ThereAndBackAsAFile) {
  Rehearsal r = rehearsal({change("lr=*0.5", 180, false)});
  r.snapshot = "step-00000100.r0.h5";
  r.as_recorded = true;
  r.growth = "weight_amax of mlp grew";
  r.runs.back().losses[3] = std::nan("");
  const std::string text = to_json(r);
  const auto j = nlohmann::json::parse(text);
  EXPECT_EQ(j.at("format"), "nanquest.rehearsal");
  EXPECT_EQ(j.at("version"), 1);
  EXPECT_TRUE(j.at("runs").at(3).at("losses").at(3).is_null());
  EXPECT_TRUE(j.at("runs").at(3).at("failed_step").is_null());
  EXPECT_EQ(j.at("runs").at(1).at("kind"), "placebo");
  EXPECT_EQ(j.at("root").at("scope"), "run");
  const auto back = rehearsal_from_json(text);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), text);
  EXPECT_EQ(rehearsal_path("run/incidents/step-00000100.r0.h5"),
            "run/incidents/step-00000100.r0.rehearsal.json");
}

TEST(Rehearsal, FilesThatAreNoneAreRefusedSayingWhy) {
  const auto refusal = [](const std::string& text) {
    const auto r = rehearsal_from_json(text);
    EXPECT_FALSE(r);
    return r ? std::string() : r.error().message;
  };
  EXPECT_EQ(refusal("{"), "rehearsal: not a JSON object");
  EXPECT_EQ(refusal("{\"format\": \"nanquest.verdict\"}"),
            "rehearsal: \"format\" is not \"nanquest.rehearsal\"");
  const std::string head = "{\"format\": \"nanquest.rehearsal\", \"version\": ";
  EXPECT_EQ(refusal(head + "2}"), "rehearsal: of version 2, this program knows version 1");
  EXPECT_EQ(refusal(head + "1, \"runs\": [{\"losses\": [1, \"x\"]}]}"),
            "rehearsal: runs[0].losses[1]: \"x\" is not a number");
  EXPECT_EQ(refusal(head + "1, \"runs\": [{\"kind\": \"other\"}]}"),
            "rehearsal: runs[0].kind: \"other\" is not one of unchanged, placebo, change");
}

/// An unchanged run that explodes scatters without end; what only survives is not to profit from that.
TEST(Rehearsal, WhatClimbsBesideAnExplosionDoesNotLearn) {
  RehearsedRun later = change("lr=*0.5", 130, true, 0.001);
  for (std::size_t i = 70; i < later.losses.size(); ++i) later.losses[i] = std::exp2(static_cast<double>(i));
  Rehearsal r =
      rehearsal({change("lr=*0.1", 168, false, 0.001), later, change("clip=1.0", 168, false, -0.1)});
  for (RehearsedRun& run : r.runs)
    for (std::size_t i = 0; run.kind != RehearsedKind::change && i < run.losses.size(); ++i)
      run.losses[i] = std::exp2(static_cast<double>(i));
  judge(r);
  EXPECT_TRUE(r.runs[3].cures) << r.runs[3].remark;
  for (const RehearsedRun& run : {r.runs[4], last(r)}) {
    EXPECT_TRUE(run.outlives) << run.change;
    EXPECT_FALSE(run.learns) << run.change;
    EXPECT_FALSE(run.cures) << run.change;
  }
  EXPECT_EQ(r.root->cured, (std::vector<std::string>{"lr=*0.1"}));
  EXPECT_NE(rehearsal_text(r).find("e+1"), std::string::npos) << "numbers of this size are not written out";
}

TEST(Rehearsal, TheTable) {
  const Rehearsal r = rehearsal({change("lr=*0.5", 168, false), change("clip=0.1", 105, true)});
  EXPECT_EQ(
      rehearsal_text(r),
      "rehearsed     step 100, from state-40\n"
      "as recorded   no losses on record to compare with\n\n"
      "run            bad at step  steps past             loss before  loss at end\n"
      "unchanged              100           –                  3.5000       3.4900\n"
      "2 placebos       99 to 103           –                  3.5000            –\n"
      "lr=*0.5                  –          64                  3.5000       2.8100  cures, verified for the "
      "run\n"
      "clip=0.1               105           1                  3.5000       3.4400  goes bad too\n\n"
      "root          DIVERGENCE: unchanged the run goes bad at step 100 and so do 2 placebos by step 103; "
      "with "
      "lr=*0.5 it goes on for 64 steps past that and learns\n");
}

}  // namespace
}  // namespace nanquest
