// A rehearsal beside a snapshot becomes the verdict's root.
#include "replay/verdict/root.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "replay/report/report.h"
#include "replay/verdict/rehearsal.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

class Root : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("nanquest-root-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    snapshot_ = (folder_ / "step-00000131.r0.h5").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) { std::ofstream(rehearsal_path(snapshot_)) << text; }
  void write(const std::string& cause, const std::string& change) {
    Rehearsal r{.step = 131};
    r.root = RehearsedRoot{cause, change, {}, {"lr=*0.5", "skip=131"}, 64, true, "in a sentence"};
    if (!change.empty()) r.root->cured = {change};
    write(to_json(r));
  }
  Verdict taken() const {
    Verdict v;
    v.step = 131;
    v.cause = Label::fp16_overflow;
    v.advice = root_advice() + " Train in bf16.";
    v.not_tested = {"the root cause: a replay of one step can't show it", "another thing"};
    take_root(v, snapshot_);
    return v;
  }

  std::filesystem::path folder_;
  std::string snapshot_;
};

TEST_F(Root, WithoutARehearsalNothingChanges) {
  const Verdict v = taken();
  EXPECT_FALSE(v.root);
  EXPECT_EQ(v.not_tested.size(), 2u);
}

TEST_F(Root, WhatCuredIsSaidWhereverTheVerdictIs) {
  write("DIVERGENCE", "lr=*0.5");
  Verdict v = taken();
  ASSERT_TRUE(v.root);
  EXPECT_EQ(v.root->cause, Label::divergence);
  EXPECT_EQ(v.root->scope, Scope::run);
  EXPECT_EQ(v.root->file, "step-00000131.r0.rehearsal.json");
  EXPECT_EQ(v.not_tested, (std::vector<std::string>{"another thing"}));
  EXPECT_EQ(root_text(*v.root),
            "DIVERGENCE (values grew over many steps), cured for the run by lr=*0.5: 64 steps past the "
            "failure; tried "
            "in vain: skip=131; losses of all runs: step-00000131.r0.rehearsal.json");
  EXPECT_NE(to_text(v).find("root        DIVERGENCE"), std::string::npos) << to_text(v);
  EXPECT_NE(to_markdown(v).find("- **Root:** DIVERGENCE"), std::string::npos);
  EXPECT_NE(to_brief(v).find("root: DIVERGENCE"), std::string::npos);
}

TEST_F(Root, WhatWasTriedIsAdvisedAndNotToBeLookedFor) {
  EXPECT_NE(taken().advice.find("not tested here"), std::string::npos);
  write("DIVERGENCE", "lr=*0.5");
  EXPECT_EQ(taken().advice,
            "Against the root: lr=*0.5, which cured the run when it was tried. Train in bf16.");
  write("UNKNOWN", "");
  EXPECT_EQ(taken().advice, "Against the root: nothing that was tried cures the run. Train in bf16.");
}

TEST_F(Root, AWiderFormatLeavesTheCauseOfTheStep) {
  write("PRECISION", "precision=fp32");
  EXPECT_EQ(taken().root->cause, Label::fp16_overflow);
}

TEST_F(Root, NothingCures) {
  write("UNKNOWN", "");
  const Verdict v = taken();
  EXPECT_EQ(v.root->cause, Label::unknown);
  EXPECT_NE(root_text(*v.root).find("nothing that was tried cures it: lr=*0.5, skip=131"), std::string::npos);
}

TEST_F(Root, WhatIsNoRehearsalOfThisStepIsNone) {
  write("{");
  EXPECT_FALSE(taken().root);
  EXPECT_NE(taken().not_tested.back().find("can't be read"), std::string::npos);
  Rehearsal other{.step = 130};
  other.root = RehearsedRoot{"DIVERGENCE", "lr=*0.5", {}, {}, 64, true, ""};
  write(to_json(other));
  EXPECT_FALSE(taken().root);
  Rehearsal doubtful{.step = 131};
  doubtful.not_tried = "the unchanged run does not go bad";
  write(to_json(doubtful));
  EXPECT_FALSE(taken().root);
  EXPECT_NE(taken().not_tested.back().find("the unchanged run does not go bad"), std::string::npos);
}

}  // namespace
}  // namespace nanquest
