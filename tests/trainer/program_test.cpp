// nanquest-trainer as a person starts it: exit codes, messages, files.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/trainer/program_fixture.h"

namespace nanquest::trainer {
namespace {

using test::Program;
using test::Ran;

TEST_F(Program, TrainsAndSaysWhatItUses) {
  const Ran r = run(tiny("--amp-dtype bf16 --eval-every 4"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("outcome          finished"), std::string::npos);
  EXPECT_NE(r.err.find("activations of linear layers and matmuls: bf16"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("held-out loss"), std::string::npos);
  EXPECT_EQ(r.err.find('\r'), std::string::npos);  // no bar and no colours outside a terminal
  EXPECT_EQ(r.err.find('\033'), std::string::npos);
  for (const char* name : {"final", "best", "state-00000012"})
    EXPECT_TRUE(std::filesystem::exists(folder / ("run/checkpoints/" + std::string(name) + ".safetensors")))
        << name;
}

TEST_F(Program, ARunIsNoTextToTrainOnWhereverItLies) {
  // At level off the folder holds checkpoints and no other file of the program.
  const std::string inside = "--level off --run-dir '" + (folder / "data/run") + "' ";
  ASSERT_EQ(run(tiny(inside)).code, 0);
  ASSERT_TRUE(std::filesystem::exists(folder / "data/run/checkpoints/final.safetensors"));
  ASSERT_FALSE(std::filesystem::exists(folder / "data/run/series.r0.h5"));
  test::write_file(folder / "data/run/notes.md", test::some_text(4000));
  const Ran again = run(tiny(inside + "--resume --steps 13"));
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST_F(Program, JsonIsOneObjectWithTheWholeStory) {
  const Ran r = run(tiny("--json --amp-dtype fp16 --inject nan-loss@5:amp"));
  EXPECT_EQ(r.code, 1) << r.err;
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_EQ(j["format"], "nanquest.training");
  EXPECT_EQ(j["exit_code"], 1);
  EXPECT_EQ(j["first_incident_step"], 5);
  EXPECT_EQ(j["fell_back"], true);
  EXPECT_EQ(j["backoff"], 0.5);
  EXPECT_EQ(j["steps"], 12);
  ASSERT_EQ(j["snapshots"].size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(j["snapshots"][0].get<std::string>()));
}

TEST_F(Program, ExitCodesAreThoseOfTheManual) {
  EXPECT_EQ(run(tiny("--policy stop --inject nan-loss@3")).code, 4);
  EXPECT_EQ(run(tiny("--policy skip --inject nan-loss@3")).code, 1);
  EXPECT_EQ(run(tiny("--on-incident stop --inject nan-loss@3")).code, 4);
  EXPECT_EQ(run(tiny("--policy skip --inject inf-grad@3x1000 --rollback-limit 0")).code, 4);
}

TEST_F(Program, AnUpdateThatSpoilsWeightsIsRecordedAndUndone) {
  const Ran r = run(tiny("--lr 1e39 --warmup-ratio 0 --policy stop --json"));
  EXPECT_EQ(r.code, 4) << r.err;
  EXPECT_NE(r.err.find("step 0 is not finite in fp32: the update left parameter "), std::string::npos)
      << r.err;
  EXPECT_NE(r.err.find("_fused_adamw_"), std::string::npos) << r.err;
  const auto j = nlohmann::json::parse(r.out);
  ASSERT_EQ(j["snapshots"].size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(j["snapshots"][0].get<std::string>()));
  EXPECT_NE(j["files"]["final"], "") << "the weights before the update are finite";
  const Ran skipped = run(tiny("--lr 1e39 --warmup-ratio 0 --policy skip --rollback-limit 0"));
  EXPECT_EQ(skipped.code, 4) << skipped.err;
}

TEST_F(Program, VersionAndHelp) {
  const Ran version = run(command("--version"));
  EXPECT_EQ(version.code, 0);
  for (const char* word : {"nanquest-trainer ", "LibTorch ", "HDF5 ", "file format "})
    EXPECT_NE(version.out.find(word), std::string::npos) << version.out;
  const Ran help = run(command("--help"));
  EXPECT_EQ(help.code, 0);
  for (const char* word :
       {"Example:", "Exit codes:", "--amp-dtype", "--on-incident", "--policy", "--lr-backoff"})
    EXPECT_NE(help.out.find(word), std::string::npos);
}

TEST_F(Program, ARunBeginsWithTheWeightsOfAnother) {
  ASSERT_EQ(run(tiny("--lr 0.01")).code, 0);
  const std::vector<std::string> names = {"final.safetensors", "state-00000012.safetensors"};
  for (const std::string& name : names)
    std::filesystem::copy_file(folder / ("run/checkpoints/" + name), folder / name);
  for (const std::string& name : names) {
    const std::string from = " --init-from '" + (folder / name) + "' ";
    const Ran r = run(tiny("--json --seed 7 --steps 1 --lr 1e-30 --warmup-ratio 0" + from));
    ASSERT_EQ(r.code, 0) << r.err;
    const Ran fresh = run(tiny("--json --seed 7 --steps 1 --lr 1e-30 --warmup-ratio 0"));
    const double begun = nlohmann::json::parse(r.out)["loss"]["start"],
                 anew = nlohmann::json::parse(fresh.out)["loss"]["start"];
    EXPECT_LT(begun, anew - 0.1) << "what the other run has learned";
    const Ran other = run(tiny("--width 32 --no-tied-head" + from));
    EXPECT_EQ(other.code, 3);
    EXPECT_TRUE(one_line(other.err)) << other.err;
    EXPECT_NE(other.err.find(folder / name), std::string::npos) << other.err;
    EXPECT_NE(other.err.find("weight is [256, 16], not [256, 32]"), std::string::npos) << other.err;
    EXPECT_NE(other.err.find(" more"), std::string::npos) << other.err;
    const Ran head = run(tiny("--no-tied-head" + from));
    EXPECT_NE(head.err.find(" is missing ("), std::string::npos) << head.err;
  }
  EXPECT_EQ(run(tiny("--init-from /nowhere/at/all")).code, 3);
  // The same command with --resume continues from the run's own state.
  const std::string from = "--stop-after 3 --init-from '" + (folder / "final.safetensors") + "' ";
  ASSERT_EQ(run(tiny(from)).code, 0);
  const Ran resumed = run(tiny(from + "--resume"));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.err.find("weights: from"), std::string::npos) << resumed.err;
}

TEST_F(Program, SkippedBatchesGoIntoQuarantineAndStayOut) {
  const std::string ids = folder / "ids.txt", with = "--on-incident skip --quarantine '" + ids + "' ";
  const Ran hit = run(tiny(with + "--json --inject nan-loss@3"));
  ASSERT_EQ(hit.code, 1) << hit.err;
  EXPECT_NE(hit.err.find("quarantine: " + ids + " names 0 samples"), std::string::npos) << hit.err;
  const auto skipped = nlohmann::json::parse(hit.out)["skipped_samples"].get<std::vector<std::string>>();
  ASSERT_EQ(skipped.size(), 2u);
  EXPECT_EQ(test::read_file(ids),
            "# batch 3 of " + (folder / "run") + ": policy skip\n" + skipped[0] + "\n" + skipped[1] + "\n");
  // A whole pass and more without them: the fourth batch, which had them, has others.
  const Ran clean = run(tiny(with + "--json --steps 150 --eval-every 0 --inject nan-loss@3"));
  EXPECT_NE(clean.err.find(" names 2 samples"), std::string::npos) << clean.err;
  const auto others = nlohmann::json::parse(clean.out)["skipped_samples"].get<std::vector<std::string>>();
  ASSERT_EQ(others.size(), 2u);
  for (const std::string& id : others) EXPECT_EQ(std::count(skipped.begin(), skipped.end(), id), 0) << id;
  // A resume without the list, which would use them again, is refused.
  const Ran without = run(tiny("--on-incident skip --steps 150 --eval-every 0 --resume"));
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.err.find("quarantine"), std::string::npos) << without.err;
  std::filesystem::remove_all(folder / "run");
  EXPECT_TRUE(one_line(without.err)) << without.err;
  const Ran nowhere = run(tiny("--quarantine /no/such/folder/ids.txt"));
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_TRUE(one_line(nowhere.err)) << nowhere.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(Program, EveryOptimizerAndClipResumesBitForBit) {
  for (const std::string like :
       {"--optimizer sgd --lr 0.1 --schedule wsd",
        "--zclip --spam --module-clip 0.5 --z-loss 1e-3 --qk-clip 0.001 --attention fused --prefetch"}) {
    std::filesystem::remove_all(folder / "run");
    const std::string full = like + " --steps 40 --eval-every 0 ";
    const Ran once = run(tiny(full));
    ASSERT_EQ(once.code, 0) << once.err;
    const std::string whole = test::read_file(folder / "run/checkpoints/final.safetensors");
    std::filesystem::remove_all(folder / "run");
    ASSERT_EQ(run(tiny(full + "--stop-after 29")).code, 0);
    ASSERT_EQ(run(tiny(full + "--resume")).code, 0);
    EXPECT_EQ(test::read_file(folder / "run/checkpoints/final.safetensors"), whole) << like;
  }
  for (const char* wrong : {"--optimizer sgd --spam", "--qk-clip 100 --qk-norm", "--qk-clip -1"}) {
    const Ran r = run(tiny(wrong));
    EXPECT_EQ(r.code, 2) << wrong;
    EXPECT_TRUE(one_line(r.err)) << r.err;
  }
}

#ifdef NANQUEST_TEST_NVTX
TEST_F(Program, PhasesAreRangesThatAProfilerSees) {
  const Ran r = run("NVTX_INJECTION64_PATH='" NANQUEST_TEST_NVTX "' NANQUEST_NVTX_LOG='" +
                    (folder / "ranges") + "' " + tiny("--eval-every 6"));
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string ranges = test::read_file(folder / "ranges");
  for (const char* name :
       {"0 step\n", "1 data\n", "1 forward\n", "1 backward\n", "1 optimizer\n", "evaluate\n"})
    EXPECT_NE(ranges.find(name), std::string::npos) << name << " in\n" << ranges.substr(0, 600);
  std::size_t steps = 0;
  for (std::size_t at = ranges.find("0 step\n"); at != std::string::npos;
       at = ranges.find("0 step\n", at + 1))
    ++steps;
  EXPECT_EQ(steps, 12u);
}
#endif

}  // namespace
}  // namespace nanquest::trainer
