// nanquest-trainer killed, interrupted, and with damaged checkpoints.
#include <signal.h>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/trainer/program_fixture.h"

namespace nanquest::trainer {
namespace {

using test::Ran;

class ProgramCheckpoint : public test::Program {};

TEST_F(ProgramCheckpoint, DamagedCheckpointIsRefused) {
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

TEST_F(ProgramCheckpoint, KilledAndResumedEndsWithTheSameBytes) {
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

TEST_F(ProgramCheckpoint, TheLastCheckpointsAreKeptByStepsAndByTime) {
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

TEST_F(ProgramCheckpoint, WhatWasBeforeAnIncidentIsSavedBeforeThePolicyActs) {
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

TEST_F(ProgramCheckpoint, ADamagedCheckpointIsNamedAndTheOneBeforeIsUsed) {
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

TEST_F(ProgramCheckpoint, AnInterruptSavesSaysHowToGoOnAndHasItsOwnExitCode) {
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

}  // namespace
}  // namespace nanquest::trainer
