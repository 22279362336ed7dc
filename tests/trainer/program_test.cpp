// nanquest-trainer as a person starts it: exit codes, words, files.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tests/trainer/helpers.h"

namespace nanquest::trainer {
namespace {

using test::Folder;
using test::Ran;

class Program : public testing::Test {
 protected:
  Program() { test::write_file(folder / "data/a.txt", test::some_text(4000)); }

  std::string command(const std::string& arguments) const {
    return std::string(NANQUEST_TEST_TRAINER) + " " + arguments;
  }
  /// The smallest run there is, plus `arguments`.
  std::string tiny(const std::string& arguments) const {
    return command("--data '" + (folder / "data") + "' --run-dir '" + (folder / "run") +
                   "' --steps 12 --depth 1 --width 16 --heads 2 --context 16 --batch-size 2 --threads 1 " +
                   arguments);
  }
  Ran run(const std::string& full) const { return test::run(full, folder); }
  /// Names of the files in the run's folder of checkpoints, sorted.
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> names;
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "run/checkpoints", ec))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string state(int batches) const {
    char name[40];
    std::snprintf(name, sizeof name, "state-%08d.safetensors", batches);
    return folder / ("run/checkpoints/" + std::string(name));
  }
  static bool one_line(const std::string& text) {
    return !text.empty() && text.find('\n') == text.size() - 1;
  }

  const Folder folder;
};

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
  // At level off the folder holds checkpoints and nothing else of the program's.
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

TEST_F(Program, ConfigFileIsReadAndTheCommandLineWins) {
  test::write_file(
      folder / "c.toml",
      "# comment\nsteps = 7\nwarmup_ratio = 0.5\nactivation = \"relu2\"\nqk-norm = true\nlr = 0.01\n");
  const Ran r =
      run(command("--json --config '" + (folder / "c.toml") + "' --steps 3 --data '" + (folder / "data") +
                  "' --run-dir '" + (folder / "run") + "' --depth 1 --width 16 --heads 2 --context 16"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(r.out)["steps"], 3);
  const auto manifest = nlohmann::json::parse(test::read_file(folder / "run/manifest.json"));
  for (const char* setting :
       {"\"activation\":\"relu2\"", "\"warmup-ratio\":\"0.5\""})  // with dashes or underscores
    EXPECT_NE(manifest.dump().find(setting), std::string::npos) << manifest.dump();
}

TEST_F(Program, AnotherNameForASettingIsTheSameSetting) {
  for (const char* key : {"on-incident", "policy"}) {
    test::write_file(folder / "c.toml", std::string(key) + " = \"stop\"\n");
    EXPECT_EQ(run(tiny("--inject nan-loss@3 --config '" + (folder / "c.toml") + "'")).code, 4) << key;
    const auto manifest = nlohmann::json::parse(test::read_file(folder / "run/manifest.json"));
    EXPECT_NE(manifest.dump().find("\"on-incident\":\"stop\""), std::string::npos) << manifest.dump();
  }
}

TEST_F(Program, UnknownKeysAndFlagsNameTheWayOut) {
  test::write_file(folder / "c.toml", "warmup-ration = 0.1\n");
  const Ran key = run(tiny("--config '" + (folder / "c.toml") + "'"));
  EXPECT_EQ(key.code, 2);
  EXPECT_NE(key.err.find("unknown key \"warmup-ration\" (did you mean \"warmup-ratio\"?)"), std::string::npos)
      << key.err;
  EXPECT_TRUE(one_line(key.err));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  test::write_file(folder / "s.toml", "[model]\ndepth = 2\n");
  EXPECT_EQ(run(tiny("--config '" + (folder / "s.toml") + "'")).code, 2);
  EXPECT_EQ(run(tiny("--config '" + (folder / "none.toml") + "'")).code, 3);
  for (const char* bad :
       {"--no-such-flag", "--lr nonsense", "--policy sometimes", "--amp-dtype fp12", "--width 15",
        "--batch-size 3 --accumulation 2", "--lr 0", "--level loud", "--policy retryfp32", "--inject sometimes", "--device tpu",
        "--dropout 2", "--warmup-ratio 3", "--lr-backoff 0", "--holdout-every 1", "--scale-floor 0",
        "--beta2 1", "--ring-every 0"}) {
    const Ran r = run(tiny(bad));
    EXPECT_EQ(r.code, 2) << bad << ": " << r.err;
    EXPECT_TRUE(one_line(r.err)) << bad << ": " << r.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "run")) << bad;
  }
}

TEST_F(Program, MissingCudaIsSaidPlainly) {
  const Ran r = run(tiny("--device cuda:99"));
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("use --device cpu"), std::string::npos) << r.err;
  EXPECT_TRUE(one_line(r.err));
}

TEST_F(Program, AFormatThatTheDeviceLacksIsSaidPlainly) {
  const Ran r = run(tiny("--tf32"));
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("tf32 is not a format of cpu"), std::string::npos) << r.err;
  EXPECT_TRUE(one_line(r.err));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(Program, BadDataIsNamed) {
  test::write_file(folder / "empty.txt", "");
  test::write_file(folder / "binary.txt", std::string("a\0b", 3));
  std::filesystem::create_directories(folder / "nothing");
  for (const char* name : {"empty.txt", "binary.txt", "nothing", "missing"}) {
    const Ran r = run(tiny("--data '" + (folder / name) + "'"));
    EXPECT_EQ(r.code, 3) << name;
    EXPECT_NE(r.err.find(folder / name), std::string::npos) << r.err;
    EXPECT_TRUE(one_line(r.err)) << r.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  }
  EXPECT_EQ(run(command("--steps 3")).code, 2);
}

TEST_F(Program, AnUnwritableRunDirectoryIsAnErrorAtTheStart) {
  test::write_file(folder / "file", "x");
  const Ran r = run(tiny("--run-dir '" + (folder / "file/run") + "'"));
  EXPECT_EQ(r.code, 3);
  EXPECT_TRUE(one_line(r.err)) << r.err;
  EXPECT_NE(r.err.find(folder / "file/run"), std::string::npos);
}

TEST_F(Program, AnEarlierRunIsMovedAsideUnlessResumed) {
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

TEST_F(Program, AResumeNamesEverySettingThatDiffersAndTheWayOut) {
  ASSERT_EQ(run(tiny("--stop-after 3 --lr 0.003")).code, 0);
  // How often something is saved or measured, and where a run ends, changes nothing of what is trained.
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

TEST_F(Program, ChangesThatAreNoneAreRefused) {
  for (const char* bad : {"--set lr", "--set lr=", "--set=lrr=1", "--set lr=fast", "--set"}) {
    const Ran r = run(tiny(bad));
    EXPECT_EQ(r.code, 2) << bad << ": " << r.err;
    EXPECT_TRUE(one_line(r.err)) << bad << ": " << r.err;
  }
  EXPECT_NE(run(tiny("--set lrr=1")).err.find("did you mean \"lr\"?"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(Program, ACheckpointOfAnotherModelOrOtherDataIsRefusedSayingWhich) {
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

TEST_F(Program, AResumedRunTellsTheWholeStory) {
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
  // The same command with --resume goes on from the run's own state.
  const std::string from = "--stop-after 3 --init-from '" + (folder / "final.safetensors") + "' ";
  ASSERT_EQ(run(tiny(from)).code, 0);
  const Ran resumed = run(tiny(from + "--resume"));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(resumed.err.find("weights: from"), std::string::npos) << resumed.err;
}

TEST_F(Program, ResumingNothingLeavesNothing) {
  const Ran r = run(tiny("--resume"));
  EXPECT_EQ(r.code, 3);
  EXPECT_TRUE(one_line(r.err)) << r.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(Program, DamagedCheckpointIsRefused) {
  ASSERT_EQ(run(tiny("--stop-after 3")).code, 0);
  const std::string path = state(3);
  const std::string whole = test::read_file(path);
  test::write_file(path, whole.substr(0, whole.size() / 2));
  const Ran r = run(tiny("--resume"));
  EXPECT_EQ(r.code, 3) << r.err;
  EXPECT_NE(r.err.find(path), std::string::npos);
  test::write_file(path, whole);
  EXPECT_EQ(run(tiny("--resume --width 32")).code, 2);  // another model
  EXPECT_EQ(run(tiny("--resume")).code, 0);
}

TEST_F(Program, KilledAndResumedEndsWithTheSameBytes) {
  const std::string longer = "--steps 150 --save-every 1 --dropout 0.2 --eval-every 0 --amp-dtype bf16 ";
  ASSERT_EQ(run(tiny(longer)).code, 0);
  const std::string whole = test::read_file(folder / "run/checkpoints/final.safetensors");
  std::filesystem::remove_all(folder / "run");

  int kills = 0;
  for (int round = 0; round < 4; ++round) {
    const std::string full = tiny(longer + (round > 0 ? "--resume" : ""));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (freopen("/dev/null", "w", stdout) == nullptr || freopen("/dev/null", "w", stderr) == nullptr)
        _exit(126);
      execl("/bin/sh", "sh", "-c", ("exec " + full).c_str(), nullptr);
      _exit(127);
    }
    const auto saved = [&] {
      const std::vector<std::string> names = checkpoints();
      return std::any_of(names.begin(), names.end(),
                         [](const std::string& n) { return n.starts_with("state-") && n.ends_with("s"); });
    };
    for (int i = 0; i < 600 && !saved(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::this_thread::sleep_for(std::chrono::milliseconds(150 + 130 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    kills += WIFSIGNALED(status);
  }
  EXPECT_GT(kills, 0);
  const Ran last = run(tiny(longer + "--resume"));
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(test::read_file(folder / "run/checkpoints/final.safetensors"), whole);
  EXPECT_EQ(checkpoints(),  // nothing that was half written
            (std::vector<std::string>{"best.safetensors", "final.safetensors", "state-00000148.safetensors",
                                      "state-00000149.safetensors", "state-00000150.safetensors"}));
}

TEST_F(Program, TheLastCheckpointsAreKeptByStepsAndByTime) {
  using Names = std::vector<std::string>;
  const Names ends = {"best.safetensors", "final.safetensors"};
  const auto kept = [&](const std::string& arguments) {
    std::filesystem::remove_all(folder / "run");
    const Ran r = run(tiny(arguments));
    EXPECT_EQ(r.code, 0) << r.err;
    Names states = checkpoints();
    EXPECT_EQ(Names(states.begin(), states.begin() + 2), ends);
    states.erase(states.begin(), states.begin() + 2);
    return states;
  };
  EXPECT_EQ(kept(""), Names{"state-00000012.safetensors"});
  EXPECT_EQ(kept("--save-every 5 --keep-last 2"),
            (Names{"state-00000010.safetensors", "state-00000012.safetensors"}));
  EXPECT_EQ(kept("--save-minutes 1e-9"), (Names{"state-00000010.safetensors", "state-00000011.safetensors",
                                                "state-00000012.safetensors"}));
  EXPECT_EQ(kept("--save-minutes 0"), Names{"state-00000012.safetensors"});
  EXPECT_EQ(run(tiny("--keep-last 0")).code, 2);
  EXPECT_EQ(run(tiny("--save-minutes -1")).code, 2);
}

TEST_F(Program, WhatWasBeforeAnIncidentIsSavedBeforeThePolicyActs) {
  const std::string longer = "--json --amp-dtype bf16 --dropout 0.1 --inject nan-loss@5:amp ";
  const Ran whole = run(tiny(longer));
  ASSERT_EQ(whole.code, 1) << whole.err;
  ASSERT_TRUE(std::filesystem::exists(state(5)));
  std::filesystem::remove(state(12));  // as if the program had been killed right after the incident
  const Ran again = run(tiny(longer + "--resume"));
  ASSERT_EQ(again.code, 1) << again.err;
  EXPECT_NE(again.err.find("step 5 is not finite in bf16"), std::string::npos) << again.err;
  auto a = nlohmann::json::parse(whole.out), b = nlohmann::json::parse(again.out);
  for (auto* j : {&a, &b}) {
    j->erase("seconds");
    j->erase("snapshots");  // the second is another file
  }
  EXPECT_EQ(a, b);
}

TEST_F(Program, ADamagedCheckpointIsNamedAndTheOneBeforeIsUsed) {
  ASSERT_EQ(run(tiny("--dropout 0.2")).code, 0);
  const std::string whole = test::read_file(folder / "run/checkpoints/final.safetensors");
  std::filesystem::remove_all(folder / "run");
  ASSERT_EQ(run(tiny("--dropout 0.2 --save-every 3 --stop-after 8")).code, 0);
  std::string newest = test::read_file(state(8));
  const std::size_t counter = newest.find("\"data_position\":\"16\"");
  ASSERT_NE(counter, std::string::npos);
  newest.replace(counter, 20, "\"data_position\":\"18\"");  // still a sensible header, and a wrong one
  test::write_file(state(8), newest);
  test::write_file(state(9) + ".tmp-1-0", "half");
  const Ran r = run(tiny("--dropout 0.2 --resume"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find(state(8) +
                       ": the checksum of its header does not match: the file was damaged; going on "
                       "from the one before, " +
                       state(6)),
            std::string::npos)
      << r.err;
  EXPECT_EQ(test::read_file(folder / "run/checkpoints/final.safetensors"), whole);
  EXPECT_FALSE(std::filesystem::exists(state(9) + ".tmp-1-0"));
  EXPECT_TRUE(std::filesystem::exists(state(8) + ".damaged"));
  for (const std::string& name : checkpoints())
    if (name.starts_with("state-")) test::write_file(folder / ("run/checkpoints/" + name), "x");
  const Ran none = run(tiny("--dropout 0.2 --resume"));
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(one_line(none.err)) << none.err;
  EXPECT_NE(none.err.find(state(12)), std::string::npos) << none.err;
}

TEST_F(Program, AnInterruptSavesSaysHowToGoOnAndHasItsOwnExitCode) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string longer = "--steps 100000 --eval-every 0 --level guard ";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (freopen("/dev/null", "w", stdout) == nullptr ||
          freopen((folder / "err").c_str(), "w", stderr) == nullptr)
        _exit(126);
      execl("/bin/sh", "sh", "-c", ("exec " + tiny(longer)).c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 600 && test::read_file(folder / "err").find("step 0/") == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    const std::string said = test::read_file(folder / "err"), words = " steps, saved; go on with: ";
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal) << said;
    const std::size_t at = said.find(words);
    ASSERT_NE(at, std::string::npos) << said;
    const std::string given = said.substr(at + words.size(), said.find('\n', at) - at - words.size());
    EXPECT_TRUE(given.ends_with(" --resume")) << given;
    const Ran r = run(given + " --stop-after 2");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err.find("step 0/"), std::string::npos) << r.err;
    std::filesystem::remove_all(folder / "run");
    std::filesystem::remove(folder / "err");
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
