// nanquest-trainer: the numbers that it writes for other programs.
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/trainer/program_fixture.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;
using test::Ran;

class ProgramMetrics : public test::Program {
 protected:
  /// The lines of a run's file, without values that differ from run to run.
  std::vector<json> lines(const std::string& file = "run/metrics.jsonl") const {
    std::vector<json> all;
    std::istringstream in(test::read_file(folder / file));
    for (std::string line; std::getline(in, line);) {
      all.push_back(json::parse(line));
      for (const char* key : {"time", "tokens_per_second"}) {
        EXPECT_GT(all.back().at(key), 0) << line;
        all.back().erase(key);
      }
    }
    return all;
  }
};

TEST_F(ProgramMetrics, HoldsALineAStepWithWhatIsKnown) {
  const Ran r =
      run(tiny("--json --eval-every 5 --metrics-csv --schedule constant --lr 0.002 --warmup-ratio 0"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("  eta 0:0"), std::string::npos) << r.err;
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 12u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].at("step"), i);
    EXPECT_EQ(all[i].at("lr"), 0.002);
    EXPECT_EQ(all[i].at("tokens"), 2 * 16 * (i + 1));
    EXPECT_GT(all[i].at("grad_norm"), 0);
    EXPECT_FALSE(all[i].contains("loss_scale")) << "fp32 has none";
    EXPECT_EQ(all[i].contains("eval_loss"), i == 4 || i == 9 || i == 11) << i;
  }
  const json summary = json::parse(r.out);
  EXPECT_EQ(all[0].at("loss"), summary["loss"]["start"]);
  EXPECT_EQ(all[11].at("eval_loss"), summary["eval_loss"]["last"]);
  // The same numbers as rows.
  std::istringstream csv(test::read_file(folder / "run/metrics.csv"));
  std::string header, row;
  std::getline(csv, header);
  std::size_t rows = 0;
  for (; std::getline(csv, row); ++rows) {
    std::istringstream names(header), cells(row);
    std::string name, cell;
    while (std::getline(names, name, ',')) {
      std::getline(cells, cell, ',');
      if (name == "time" || name == "tokens_per_second") continue;
      EXPECT_EQ(all.at(rows).contains(name), !cell.empty()) << name;
      if (!cell.empty()) {
        EXPECT_EQ(all[rows].at(name), std::stod(cell)) << name;
      }
      cell.clear();
    }
  }
  EXPECT_EQ(rows, 12u);
}

TEST_F(ProgramMetrics, QkClipSaysHowLargeLogitsAreAndHowManyHeadsItScaled) {
  const std::string last = "--eval-every 0 --seed 4 --init-std 0.3 ";
  ASSERT_EQ(run(tiny(last)).code, 0);
  const std::string without = test::read_file(folder / "run/checkpoints/final.safetensors");
  EXPECT_FALSE(lines().front().contains("qk_logit"));
  std::filesystem::remove_all(folder / "run");
  ASSERT_EQ(run(tiny(last + "--qk-clip 1e6")).code, 0);
  EXPECT_EQ(test::read_file(folder / "run/checkpoints/final.safetensors"), without)
      << "looking at logits changes no bit of what is learned";
  double largest = 0;
  for (const json& line : lines()) {
    EXPECT_EQ(line.at("qk_clipped"), 0);
    largest = std::max(largest, line.at("qk_logit").get<double>());
  }
  ASSERT_GT(largest, 0);
  std::filesystem::remove_all(folder / "run");
  const Ran r = run(tiny(last + "--qk-clip " + std::to_string(largest / 4)));
  ASSERT_EQ(r.code, 0) << r.err;
  double clipped = 0;
  for (const json& line : lines()) {
    EXPECT_LE(line.at("qk_clipped"), 2) << "there are two heads";
    EXPECT_EQ(line.at("qk_clipped") > 0, line.at("qk_logit") > largest / 4) << line;
    clipped += line.at("qk_clipped").get<double>();
  }
  EXPECT_GT(clipped, 0);
  EXPECT_EQ(
      json::parse(test::read_file(folder / "run/manifest.json")).dump().find("qk-clip") == std::string::npos,
      false);
}

TEST_F(ProgramMetrics, AScaleIsTheScaleOfTheStepAndARolledBackStepStandsOnce) {
  const Ran r = run(
      tiny("--amp-dtype fp16 --init-scale 4096 --on-incident rollback --ring-every 4 --inject nan-loss@6"));
  ASSERT_EQ(r.code, 1) << r.err;
  const std::vector<json> all = lines();
  ASSERT_EQ(all.size(), 12u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].at("step"), i);
    EXPECT_EQ(all[i].at("loss_scale"), 4096);
    EXPECT_EQ(all[i].at("rollbacks"), i < 4 ? 0 : 1);  // those from 4 on are of after the rollback
  }
}

TEST_F(ProgramMetrics, EveryNthOrNoneAndARefusal) {
  ASSERT_EQ(run(tiny("--metrics-every 5 --eval-every 0 --eval-windows 0")).code, 0);
  std::vector<int> steps;
  for (const json& line : lines()) steps.push_back(line.at("step"));
  EXPECT_EQ(steps, (std::vector<int>{0, 5, 10, 11}));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/metrics.csv"));
  std::filesystem::remove_all(folder / "run");
  ASSERT_EQ(run(tiny("--metrics-every 0 --metrics-csv")).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "run/metrics.jsonl"));
  EXPECT_EQ(run(tiny("--metrics-every -1")).code, 2);
}

TEST_F(ProgramMetrics, ANewRunMovesThoseOfTheEarlierOneToTheRestOfIt) {
  for (const char* level : {"guard", "off"}) {
    std::filesystem::remove_all(folder / "run");
    const std::string common = std::string("--level ") + level + " --metrics-csv ";
    ASSERT_EQ(run(tiny(common)).code, 0);
    const std::string before = test::read_file(folder / "run/metrics.jsonl");
    ASSERT_EQ(run(tiny(common + "--seed 7 --stop-after 3")).code, 0);
    EXPECT_EQ(lines().size(), 3u);
    std::vector<std::filesystem::path> earlier;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "run/earlier"))
      earlier.push_back(entry.path());
    ASSERT_EQ(earlier.size(), 1u);
    EXPECT_EQ(test::read_file(earlier[0] / "metrics.jsonl"), before);
    EXPECT_TRUE(std::filesystem::exists(earlier[0] / "metrics.csv"));
    EXPECT_TRUE(std::filesystem::exists(earlier[0] / "checkpoints"));
  }
}

// Killed anywhere and resumed, the file equals that of a run without kills.
TEST_F(ProgramMetrics, KilledAndResumedEveryStepStandsOnce) {
  const std::string longer = "--steps 120 --save-every 7 --dropout 0.2 --eval-every 30 ";
  ASSERT_EQ(run(tiny(longer)).code, 0);
  const std::vector<json> whole = lines();
  ASSERT_EQ(whole.size(), 120u);
  std::filesystem::remove_all(folder / "run");
  for (int round = 0; round < 3; ++round) {
    const std::string full = tiny(longer + (round > 0 ? "--resume" : ""));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (freopen("/dev/null", "w", stdout) == nullptr || freopen("/dev/null", "w", stderr) == nullptr)
        _exit(126);
      execl("/bin/sh", "sh", "-c", ("exec " + full).c_str(), nullptr);
      _exit(127);
    }
    const auto count = [&] {
      const std::string text = test::read_file(folder / "run/metrics.jsonl");
      return std::count(text.begin(), text.end(), '\n');
    };
    for (int i = 0; i < 6000 && count() < 20 + 25 * round; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  std::ofstream(folder / "run/metrics.jsonl", std::ios::app)
      << "{\"step\":119,\"lo";  // as after a crash of the machine
  const Ran last = run(tiny(longer + "--resume"));
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_NE(last.err.find(" cut off: the run goes on from step "), std::string::npos) << last.err;
  EXPECT_EQ(lines(), whole);
}

}  // namespace
}  // namespace nanquest::trainer
