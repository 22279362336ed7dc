// nanquest-trainer rehearse: a small version of the story, with a rate that is too high for fp16. Nothing is
// planted.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/trainer/program_fixture.h"

namespace nanquest::trainer {
namespace {

namespace fs = std::filesystem;
using test::Ran;

class Rehearse : public test::Program {
 protected:
  Rehearse() { test::write_file(folder / "data/a.txt", test::some_text(20000)); }

  std::string story(const std::string& more) const {
    return command(
        "--data '" + (folder / "data") + "' --run-dir '" + (folder / "run") +
        "' --steps 200 --amp-dtype fp16 --depth 2 --width 32 --heads 2 --context 32 --activation relu2 "
        "--no-tied-head --init-std 0.1 --batch-size 2 --lr 0.2 --warmup-ratio 0.2 --beta2 0.95 --init-scale "
        "1024 "
        "--lr-backoff 0.25 --eval-every 0 --eval-windows 0 --threads 1 " +
        more);
  }
  std::string rehearse(const std::string& arguments) const {
    return command("rehearse '" + (folder / "run") + "' " + arguments);
  }
  /// Every file of the run, with its content.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "run"))
      if (entry.is_regular_file()) all[entry.path().string()] = test::read_file(entry.path().string());
    return all;
  }
  /// The step of the first one.
  std::int64_t incident() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder / "run/incidents"))
      names.insert(entry.path().filename().string());
    return std::stoll(names.begin()->substr(names.begin()->find('-') + 1));
  }
};

TEST_F(Rehearse, ASmallerRateCuresAndPlacebosDoNot) {
  ASSERT_EQ(run(story("")).code, 1);
  const auto before = files();
  const std::int64_t step = incident();
  const Ran r = run(
      rehearse("--json --placebos 3 --set 'lr=*0.2' --set init-scale=2048,clip=0.5 --set amp-dtype=fp32"));
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_EQ(j["as_recorded"], true);
  EXPECT_EQ(j["step"], step);
  ASSERT_EQ(j["runs"].size(), 7u);
  EXPECT_EQ(j["runs"][0]["failed_step"], step) << "unchanged it goes bad at the same step again";
  EXPECT_EQ(j["runs"][0]["first_step"], 0) << "there is no checkpoint that is old enough";
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(j["runs"][i]["kind"], "placebo");
    EXPECT_FALSE(j["runs"][i]["failed_step"].is_null()) << j["runs"][i]["change"];
    EXPECT_NE(j["runs"][i]["losses"], j["runs"][0]["losses"]) << j["runs"][i]["change"];
  }
  EXPECT_EQ(j["runs"][4]["change"], "lr=*0.2");
  EXPECT_EQ(j["runs"][4]["cures"], true);
  EXPECT_EQ(j["runs"][5]["cures"], false);
  // fp32 doesn't go bad; whether it also learns at this rate, and so is a cure, differs between processors.
  // Weights grew: it only delays the failure. The snapshot's history shows that, as for rewind.
  EXPECT_EQ(j["runs"][6]["failed_step"], nullptr);
  EXPECT_TRUE(j["growth"].get_ref<const std::string&>().starts_with("weight_amax of ")) << j["growth"];
  EXPECT_EQ(j["root"]["cause"], "DIVERGENCE");
  EXPECT_EQ(j["root"]["change"], "lr=*0.2");
  nlohmann::json cures = nlohmann::json::array();
  for (int i = 4; i <= 6; ++i)
    if (j["runs"][i]["cures"] == true) cures.push_back(j["runs"][i]["change"]);
  EXPECT_EQ(j["root"]["cured"], cures);
  EXPECT_EQ(j["root"]["verified"], true);

  // The run is unchanged except for the one new file beside its snapshot.
  auto after = files();
  const std::string snapshot = *j["snapshot"].get_ptr<const std::string*>();
  const auto written =
      after.find(folder / ("run/incidents/" + snapshot.substr(0, snapshot.size() - 3) + ".rehearsal.json"));
  ASSERT_NE(written, after.end()) << r.err;
  EXPECT_EQ(nlohmann::json::parse(written->second), j);
  after.erase(written);
  EXPECT_EQ(after, before);
}

TEST_F(Rehearse, BeginsAtTheLastCheckpointThatIsEarlyEnough) {
  ASSERT_EQ(run(story("--save-every 10 --keep-last 40")).code, 1);
  const std::int64_t step = incident();
  const Ran r = run(rehearse("--json --no-file --placebos 1 --before 20 --set 'lr=*0.2'"));
  ASSERT_EQ(r.code, 0) << r.err;
  auto j = nlohmann::json::parse(r.out);
  EXPECT_EQ(j["runs"][0]["first_step"], (step - 20) / 10 * 10);
  EXPECT_EQ(j["as_recorded"], true);
  EXPECT_EQ(j["runs"][0]["failed_step"], step);
  EXPECT_FALSE(fs::exists(folder / "run/incidents/step-00000072.r0.rehearsal.json"));

  const Ran given =
      run(command("rehearse '" + state(30) + "' --json --no-file --placebos 0 --set 'lr=*0.2'"));
  j = nlohmann::json::parse(given.out);
  EXPECT_EQ(j["runs"][0]["first_step"], 30);
  EXPECT_EQ(j["runs"][0]["failed_step"], step);

  // Settings that can't continue from there are refused before anything runs.
  const Ran model = run(rehearse("--before 20 --set width=64"));
  EXPECT_EQ(model.code, 2);
  EXPECT_TRUE(one_line(model.err)) << model.err;
  EXPECT_NE(model.err.find("width makes another model"), std::string::npos) << model.err;
  test::write_file(folder / "data/b.txt", test::some_text(3000));
  const Ran data = run(rehearse("--before 20 --set lr=1"));
  EXPECT_EQ(data.code, 2);
  EXPECT_NE(data.err.find("other data"), std::string::npos) << data.err;
  const Ran beginning = run(rehearse("--before 1000 --set lr=1"));
  EXPECT_EQ(beginning.code, 2);
  EXPECT_NE(beginning.err.find("was trained on other data"), std::string::npos) << beginning.err;
}

TEST_F(Rehearse, ASkippedBatchIsNotInQuarantineYet) {
  // The run itself adds the id to the file, after the step that is rehearsed.
  const std::string with =
      "--on-incident skip --quarantine '" + (folder / "ids.txt") + "' --rollback-limit 0";
  ASSERT_EQ(run(story(with)).code, 4) << "the rate is too high for every batch";
  const std::string ids = test::read_file(folder / "ids.txt");
  ASSERT_NE(ids.find('@'), std::string::npos);
  const auto j = nlohmann::json::parse(run(rehearse("--json --no-file --placebos 0 --set 'lr=*0.2'")).out);
  EXPECT_EQ(j["as_recorded"], true);
  EXPECT_EQ(j["runs"][0]["failed_step"], incident());
  EXPECT_EQ(test::read_file(folder / "ids.txt"), ids);
}

TEST_F(Rehearse, ARunWithoutAnIncidentSaysSo) {
  ASSERT_EQ(run(tiny("")).code, 0);
  const Ran r = run(rehearse("--set 'lr=*2'"));
  EXPECT_EQ(r.code, 2);
  EXPECT_TRUE(one_line(r.err)) << r.err;
  EXPECT_NE(r.err.find("no incident on record (give --step N"), std::string::npos) << r.err;
  const Ran any = run(rehearse("--set 'lr=*2' --step 4 --placebos 1"));
  EXPECT_EQ(any.code, 1);
  EXPECT_NE(any.out.find("not claimed: the unchanged run does not go bad at step 4"), std::string::npos)
      << any.out;
}

TEST_F(Rehearse, WhatIsNotUnderstoodIsOneLine) {
  ASSERT_EQ(run(tiny("--inject nan-loss@5")).code, 1);
  for (const auto& [arguments, words] : {std::pair{"--set lrr=1", "did you mean \"lr\"?"},
                                         {"--set 'lr=*fast'", "can't be multiplied"},
                                         {"--set 'schedule=*2'", "can't be multiplied"},
                                         {"--set save-every=3", "decides nothing"},
                                         {"--set lr", "has no value"},
                                         {"--steps 3", "--steps"},
                                         {"--step 99999 --data /nowhere", "no such file or folder"}}) {
    const Ran r = run(rehearse(arguments));
    EXPECT_NE(r.code, 0) << arguments;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
    EXPECT_TRUE(r.out.empty()) << r.out;
  }
  for (const std::string& nothing : {folder / "nothing", folder / "data", folder / "data/a.txt",
                                     folder / "run/checkpoints/final.safetensors"}) {
    const Ran r = run(command("rehearse '" + nothing + "'"));
    EXPECT_EQ(r.code, 3) << nothing;
    EXPECT_TRUE(one_line(r.err)) << r.err;
  }
  // Injected faults are injected again.
  const Ran r = run(rehearse("--placebos 1 --set 'lr=*0.5'"));
  EXPECT_EQ(r.code, 1) << r.err;
  EXPECT_NE(r.out.find("nothing of what was tried cures it"), std::string::npos) << r.out;
}

TEST_F(Rehearse, CtrlCLeavesNothing) {
  ASSERT_EQ(run(story("")).code, 1);
  const auto before = files();
  // Once the first run is over, as the standard error of this shell says.
  const std::string told = "'" + (folder / "stderr") + "'";
  const Ran r = run(rehearse("--placebos 500 --set 'lr=*0.2' & until grep -q ^unchanged " + told +
                             " || ! kill -0 $!; do sleep 0.05; done; kill -INT $!; wait $!"));
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_NE(r.err.find("interrupted: nothing was written"), std::string::npos) << r.err;
  EXPECT_EQ(files(), before);
}

}  // namespace
}  // namespace nanquest::trainer
