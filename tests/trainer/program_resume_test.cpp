// nanquest-trainer: resuming a run, and what must be unchanged for that.
#include <nlohmann/json.hpp>

#include "tests/trainer/program_fixture.h"

namespace nanquest::trainer {
namespace {

using test::Ran;

class ProgramResume : public test::Program {};

// The format that was used is on record, not the word "auto": on another machine that may be another format.
TEST_F(ProgramResume, AResumeIsToldWhereAutoIsAnotherFormatNow) {
  const Ran begun = run(tiny("--stop-after 3"));
  EXPECT_NE(begun.err.find("amp-dtype auto: fp32 on cpu"), std::string::npos) << begun.err;
  const auto config = nlohmann::json::parse(test::read_file(folder / "run/manifest.json")).at("config");
  EXPECT_EQ(config.at("amp-dtype"), "fp32");
  EXPECT_EQ(config.at("tf32-conv"), "false");
  EXPECT_EQ(run(tiny("--resume --stop-after 3")).code, 0);
  std::filesystem::remove_all(folder / "run");
  ASSERT_EQ(run(tiny("--amp-dtype bf16 --stop-after 3")).code, 0);  // as auto would be on another machine
  const Ran r = run(tiny("--resume"));
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_NE(r.err.find("amp-dtype is fp32, was bf16"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("--set amp-dtype=fp32"), std::string::npos) << r.err;
  EXPECT_EQ(run(tiny("--resume --set amp-dtype=auto")).code, 0);
}

TEST_F(ProgramResume, AResumeOfAnotherLengthSaysWhatBecomesOfTheRate) {
  for (const std::string schedule : {"cosine", "constant"}) {
    std::filesystem::remove_all(folder / "run");
    const std::string like = "--lr 0.01 --warmup-ratio 0 --schedule " + schedule;
    ASSERT_EQ(run(tiny(like + " --stop-after 6")).code, 0);
    const Ran same = run(tiny(like + " --resume --stop-after 1"));
    EXPECT_EQ(same.err.find("steps is"), std::string::npos) << same.err;
    const Ran longer = run(tiny(like + " --resume --steps 21"));
    EXPECT_EQ(longer.code, 0) << longer.err;
    EXPECT_NE(longer.err.find("steps is 21, was 12"), std::string::npos) << longer.err;
    // A third of 21: (1 + cos 60 degrees) / 2 of the peak.
    EXPECT_EQ(longer.err.find("the rate goes on at 0.0075") != std::string::npos, schedule == "cosine")
        << longer.err;
  }
}

TEST_F(ProgramResume, AnEarlierRunIsMovedAsideUnlessResumed) {
  for (const char* level : {"guard", "off"}) {
    std::filesystem::remove_all(folder / "run");
    ASSERT_EQ(run(tiny("--stop-after 3 --inject nan-loss@1 --policy skip --level guard")).code, 1);
    const std::string weights = test::read_file(folder / "run/checkpoints/final.safetensors");
    const Ran resumed = run(tiny(std::string("--resume --policy skip --level ") + level));
    EXPECT_EQ(resumed.code, 1) << resumed.err;
    EXPECT_EQ(resumed.err.find("is now in"), std::string::npos) << resumed.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "run/earlier"));
    const Ran again = run(tiny(std::string("--seed 7 --level ") + level));
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_NE(
        again.err.find("the run that was in " + (folder / "run") + " is now in " + (folder / "run/earlier/")),
        std::string::npos)
        << again.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder / "run/incidents"));  // nothing of the first run is mixed in
    const auto earlier = std::filesystem::directory_iterator(folder / "run/earlier")->path();
    EXPECT_TRUE(std::filesystem::exists(earlier / "incidents/step-00000001.r0.h5"));
    EXPECT_TRUE(std::filesystem::exists(earlier / "checkpoints/final.safetensors"));
    EXPECT_NE(test::read_file(folder / "run/checkpoints/final.safetensors"), weights);
  }
}

TEST_F(ProgramResume, AResumeNamesEverySettingThatDiffersAndTheWayOut) {
  ASSERT_EQ(run(tiny("--stop-after 3 --lr 0.003")).code, 0);
  // How often something is saved or measured, and where a run ends, does not change the training.
  const Ran r = run(tiny("--resume --lr 0.01 --grad-clip 0.5 --save-every 2 --eval-every 4 --steps 13"));
  EXPECT_EQ(r.code, 2);
  EXPECT_TRUE(one_line(r.err)) << r.err;
  for (const char* words : {": grad-clip is 0.5, was 1; lr is 0.01, was 0.003 (",
                            "give --grad-clip 1 --lr 0.003;", "give --set grad-clip=0.5 --set lr=0.01)"})
    EXPECT_NE(r.err.find(words), std::string::npos) << words << " in " << r.err;
  const Ran half = run(tiny("--resume --lr 0.01 --set grad-clip=0.5"));
  EXPECT_EQ(half.code, 2);
  EXPECT_EQ(half.err.find("was 1;"), std::string::npos) << half.err;
  EXPECT_NE(half.err.find("lr is 0.01, was 0.003"), std::string::npos) << half.err;

  const Ran allowed = run(tiny("--resume --set lr=0.01 --set grad_clip=0.5 --stop-after 2"));
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  EXPECT_NE(allowed.err.find("from step 3 on: lr is 0.01, was 0.003\n"), std::string::npos) << allowed.err;
  const Ran back = run(tiny("--resume --lr 0.003 --set grad-clip=0.5"));
  EXPECT_EQ(back.code, 2);
  EXPECT_NE(back.err.find("lr is 0.003, was 0.01"), std::string::npos) << back.err;
  EXPECT_EQ(run(tiny("--resume --lr 0.01 --grad-clip 0.5 --save-every 5")).code, 0);
}

// The command that the refusal names must work.
TEST_F(ProgramResume, ASwitchIsNamedAsItCanBeGiven) {
  ASSERT_EQ(run(tiny("--zclip --stop-after 3")).code, 0);
  const Ran r = run(tiny("--resume"));
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("to go on as before give --zclip=true;"), std::string::npos) << r.err;
  EXPECT_EQ(run(tiny("--resume --zclip=true")).code, 0);
}

TEST_F(ProgramResume, ChangesThatAreNoneAreRefused) {
  for (const char* bad : {"--set lr", "--set lr=", "--set=lrr=1", "--set lr=fast", "--set"}) {
    const Ran r = run(tiny(bad));
    EXPECT_EQ(r.code, 2) << bad << ": " << r.err;
    EXPECT_TRUE(one_line(r.err)) << bad << ": " << r.err;
  }
  EXPECT_NE(run(tiny("--set lrr=1")).err.find("did you mean \"lr\"?"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(ProgramResume, ACheckpointOfAnotherModelOrOtherDataIsRefusedSayingWhich) {
  ASSERT_EQ(run(tiny("--stop-after 3")).code, 0);
  const Ran model = run(tiny("--resume --width 32 --lr 1"));
  EXPECT_EQ(model.code, 2);
  EXPECT_TRUE(one_line(model.err)) << model.err;
  EXPECT_NE(model.err.find("is of another model: width=16 is width=32 now"), std::string::npos) << model.err;
  test::write_file(folder / "data/b.txt", test::some_text(4000));
  const Ran data = run(tiny("--resume"));
  EXPECT_EQ(data.code, 2);
  EXPECT_TRUE(one_line(data.err)) << data.err;
  EXPECT_NE(data.err.find("is of other data: files="), std::string::npos) << data.err;
}

TEST_F(ProgramResume, AResumedRunTellsTheWholeStory) {
  const std::string longer =
      "--json --amp-dtype fp16 --init-scale 16777216 --scale-growth-interval 3 --policy skip --eval-every 4 "
      "--inject nan-loss@2 --dropout 0.1 ";
  const Ran whole = run(tiny(longer));
  ASSERT_EQ(whole.code, 1) << whole.err;
  std::filesystem::remove_all(folder / "run");
  ASSERT_EQ(run(tiny(longer + "--stop-after 5")).code, 1);
  const Ran parts = run(tiny(longer + "--resume"));
  ASSERT_EQ(parts.code, 1) << parts.err;
  auto a = nlohmann::json::parse(whole.out), b = nlohmann::json::parse(parts.out);
  EXPECT_EQ(a["skipped_samples"].size(), 2u);
  EXPECT_GT(a["loss_scale_history"].size(), 1u);
  EXPECT_GT(a["loss"]["start"], 1.0);
  for (auto* j : {&a, &b}) j->erase("seconds");
  EXPECT_EQ(a, b);
}

TEST_F(ProgramResume, ResumingNothingLeavesNothing) {
  const Ran r = run(tiny("--resume"));
  EXPECT_EQ(r.code, 3);
  EXPECT_TRUE(one_line(r.err)) << r.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

}  // namespace
}  // namespace nanquest::trainer
