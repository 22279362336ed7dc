// Several processes that train one model: nanquest-trainer and a separate program (ranks_program) under
// mpirun.
#include <unistd.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/trainer/program_fixture.h"

namespace nanquest::trainer {
namespace {

using test::Ran;

class Ranks : public test::Program {
 protected:
  void SetUp() override {
    if (std::string(NANQUEST_TEST_MPIRUN).empty()) GTEST_SKIP() << "no mpirun here (package openmpi-bin)";
    const Ran version = run(NANQUEST_TEST_MPIRUN " --allow-run-as-root --version");
    if (!std::regex_search(version.out, std::regex("Open MPI|OpenRTE")))
      GTEST_SKIP() << "these tests know Open MPI's mpirun only";
  }

  static std::string on(int ranks, const std::string& full) {
    std::string launch = NANQUEST_TEST_MPIRUN " --oversubscribe --bind-to none -n " + std::to_string(ranks);
    if (geteuid() == 0) launch += " --allow-run-as-root";
    return launch + " " + full;
  }
  /// nanquest-trainer: 20 steps, 8 samples each.
  std::string trained(int ranks, const std::string& arguments) const {
    return on(ranks,
              command("--data '" + (folder / "data") + "' --run-dir '" + (folder / "run") +
                      "' --steps 20 --depth 1 --width 16 --heads 2 --context 16 --batch-size 8 --threads 1 "
                      "--lr 0.01 --eval-every 5 " +
                      arguments));
  }
  std::string own(int ranks, const std::string& arguments) const {
    return on(ranks, std::string(NANQUEST_TEST_RANKS) + " '" + (folder / "own") + "' " + arguments);
  }
  /// "loss" of each line of metrics.jsonl, or another number.
  std::vector<double> metric(const std::string& name = "loss") const {
    std::vector<double> values;
    std::istringstream lines(test::read_file(folder / "run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto row = nlohmann::json::parse(line);
      if (row.contains(name)) values.push_back(row.at(name));
    }
    return values;
  }
  void anew() const {
    for (const char* made : {"run", "own"}) std::filesystem::remove_all(folder / made);
  }
};

/// The rest of each line that begins with `begin`.
std::vector<std::string> lines(const Ran& ran, const std::string& begin) {
  std::vector<std::string> found;
  std::istringstream in(ran.out);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(begin)) found.push_back(line.substr(begin.size()));
  return found;
}

std::vector<double> losses(const Ran& ran) {
  std::vector<double> values;
  for (const std::string& line : lines(ran, "step "))
    values.push_back(std::stod(line.substr(line.find("loss ") + 5)));
  return values;
}

/// By rank, the rest of its line "rank N WHAT …".
std::map<int, std::string> of_ranks(const Ran& ran, const std::string& what) {
  std::map<int, std::string> all;
  for (const std::string& line : lines(ran, "rank ")) {
    const std::size_t space = line.find(' ');
    if (line.compare(space + 1, what.size(), what) == 0)
      all[std::stoi(line)] = line.substr(space + 1 + what.size());
  }
  return all;
}

std::vector<std::set<int>> steps_of(const std::string& rows) {
  std::vector<std::set<int>> steps;
  std::istringstream in(rows);
  for (std::string step; std::getline(in, step, ';');) {
    std::istringstream numbers(step);
    std::set<int> seen;
    for (int row = 0; numbers >> row;) seen.insert(row);
    steps.push_back(seen);
  }
  return steps;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], relative * std::abs(b[i])) << "at " << i;
}

TEST_F(Ranks, GiveTheLossesOfOneProcess) {
  const std::string as = "--qk-clip 0.02 --zclip --accumulation 2";
  ASSERT_EQ(run(trained(1, as)).code, 0);
  const std::vector<double> loss = metric(), norm = metric("grad_norm"), held_out = metric("eval_loss"),
                            clipped = metric("qk_clipped");
  ASSERT_EQ(loss.size(), 20u);
  ASSERT_EQ(held_out.size(), 4u);
  EXPECT_GT(*std::max_element(clipped.begin(), clipped.end()), 0)
      << "nothing was clipped, so nothing was compared";
  for (const int ranks : {2, 4}) {
    anew();
    const Ran ran = run(trained(ranks, as));
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("ranks: " + std::to_string(ranks)), std::string::npos) << ran.err;
    expect_near(metric(), loss, 1e-5);
    expect_near(metric("grad_norm"), norm, 1e-4);
    expect_near(metric("eval_loss"), held_out, 1e-5);
    EXPECT_EQ(metric("qk_clipped"), clipped);
    const auto manifest = nlohmann::json::parse(test::read_file(folder / "run/manifest.json"));
    EXPECT_EQ(manifest.at("world_size"), ranks);
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_TRUE(std::filesystem::exists(folder / ("run/series.r" + std::to_string(rank) + ".h5")));
  }
}

TEST_F(Ranks, ShareTheSameSamplesOfEachStep) {
  const Ran alone = run(own(1, ""));
  ASSERT_EQ(alone.code, 0) << alone.out << alone.err;
  const std::vector<std::set<int>> all = steps_of(of_ranks(alone, "rows")[0]);
  ASSERT_EQ(all.size(), 20u);
  for (const int ranks : {2, 4}) {
    anew();
    const Ran ran = run(own(ranks, ""));
    ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
    expect_near(losses(ran), losses(alone), 1e-5);
    std::vector<std::set<int>> together(all.size());
    std::size_t rows = 0;
    for (const auto& [rank, text] : of_ranks(ran, "rows")) {
      const std::vector<std::set<int>> own_steps = steps_of(text);
      ASSERT_EQ(own_steps.size(), all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        rows += own_steps[i].size();
        together[i].insert(own_steps[i].begin(), own_steps[i].end());
      }
    }
    EXPECT_EQ(together, all);
    EXPECT_EQ(rows, 20u * 8) << "no row twice";
    // One weight gets a gradient on the last rank alone, another on none.
    const std::map<int, std::string> weights = of_ranks(ran, "weights");
    ASSERT_EQ(weights.size(), static_cast<std::size_t>(ranks));
    for (const auto& [rank, hash] : weights) EXPECT_EQ(hash, weights.at(0)) << rank;
    EXPECT_NE(ran.out.find("weight unused.weight gets no gradient"), std::string::npos) << ran.out;
    EXPECT_EQ(ran.out.find("weight rare.weight gets no"), std::string::npos) << ran.out;
    EXPECT_NEAR(std::stod(lines(ran, "held out ").at(0)), std::stod(lines(alone, "held out ").at(0)), 1e-5);
  }
}

TEST_F(Ranks, BranchAlikeWhereOneOfThemBreaks) {
  for (const int ranks : {2, 4}) {
    anew();
    const Ran ran = run(own(ranks, "zero=13 steps=12"));  // the second batch, rows 8 to 15
    EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
    const std::string whose = std::to_string(ranks == 2 ? 1 : 2);
    EXPECT_NE(ran.out.find("rank 0 says rank " + whose + "'s loss was "), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("rank " + whose + " says step 1 is not finite"), std::string::npos) << ran.out;
    const std::map<int, std::string> weights = of_ranks(ran, "weights"), ends = of_ranks(ran, "ended");
    ASSERT_EQ(weights.size(), static_cast<std::size_t>(ranks));
    for (const auto& [rank, hash] : weights) EXPECT_EQ(hash, weights.at(0)) << rank;
    for (const auto& [rank, end] : ends) EXPECT_EQ(end, " at 12: finished") << rank;
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_TRUE(
          std::filesystem::exists(folder / ("own/incidents/step-00000001.r" + std::to_string(rank) + ".h5")));
    const std::string file = folder / ("own/incidents/step-00000001.r" + whose + ".h5");
    EXPECT_EQ(lines(ran, "incident ").at(0), file);
    const Ran replayed = run(std::string(NANQUEST_TEST_REPLAY) + " '" + file + "' --json -q");
    EXPECT_EQ(replayed.code, 1) << replayed.err;
    const auto verdict = nlohmann::json::parse(replayed.out);
    EXPECT_EQ(verdict.at("culprit").at("op"), "aten::log") << replayed.out;
    EXPECT_EQ(verdict.at("reproduction").at("bit_exact"), true);
    const Ran together =
        run(std::string(NANQUEST_TEST_REPLAY) + " ranks '" + (folder / "own") + "' --json -q");
    EXPECT_EQ(together.code, 1) << together.err;
    const auto found = nlohmann::json::parse(together.out);
    EXPECT_EQ(found.at("finding"), "rank") << together.out;
    EXPECT_EQ(std::to_string(found.at("first").at("rank").get<int>()), whose);
    EXPECT_EQ(found.at("first").at("op"), "aten::log");
    EXPECT_EQ(found.at("proof").at("healed"), true);
  }
}

// With many ranks few write full snapshots: the one that was first, its neighbours, and the one across the
// ring.
TEST_F(Ranks, LeaveTheFilesOfManyToAFew) {
  const Ran ran = run(own(8, "zero=13 steps=3"));
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  std::set<int> whole, rows;
  for (int rank = 0; rank < 8; ++rank) {
    const std::string stem = folder / ("own/incidents/step-00000001.r" + std::to_string(rank));
    if (std::filesystem::exists(stem + ".h5")) whole.insert(rank);
    if (std::filesystem::exists(stem + ".row")) rows.insert(rank);
  }
  EXPECT_EQ(whole, (std::set<int>{1, 4, 5, 6})) << ran.out;
  EXPECT_EQ(rows, (std::set<int>{0, 2, 3, 7})) << ran.out;
  EXPECT_NE(ran.out.find("no file of this rank: rank 5 was first"), std::string::npos) << ran.out;
}

TEST_F(Ranks, BranchAlikeAtEveryLevelAndPolicy) {
  const std::pair<std::string, std::string> cases[] = {
      {"--level trace --policy skip --inject nan-loss@3:r1", "rank 1's loss was NaN before"},
      {"--level watch --policy rollback --inject inf-grad@3:r1", "rank 1's gradients were not finite before"},
      {"--level off --policy retry_fp32 --amp-dtype bf16 --inject inf-grad@3:amp:r1",
       "rank 1's gradients were not"},
      {"--amp-dtype bf16 --policy fallback_fp32 --inject nan-loss@3:amp:r1", "rank 1's loss was NaN before"}};
  for (const auto& [as, words] : cases) {
    anew();
    const Ran ran = run(trained(2, "--steps 8 --json " + as));
    ASSERT_EQ(ran.code, 1) << as << ran.err;  // the ranks' weights are compared at the end
    const auto told = nlohmann::json::parse(ran.out.substr(ran.out.find('{')));
    EXPECT_EQ(told.at("incidents"), 1) << as << ran.err;
    EXPECT_EQ(told.at("steps"), 8);
    EXPECT_EQ(told.at("fell_back"), as.find("fallback") != std::string::npos);
    EXPECT_NE(ran.err.find(words), std::string::npos) << as << ran.err;
    EXPECT_EQ(told.at("snapshots").size(), as.find("off") == std::string::npos ? 1u : 0u);
  }
}

TEST_F(Ranks, LowerTheLossScaleTogether) {
  const std::string as = "--amp-dtype fp16 --init-scale 16777216 --scale-growth-interval 3 --json";
  const auto history = [&](int ranks, const std::string& more) {
    anew();
    const Ran ran = run(trained(ranks, as + more));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at("loss_scale_history");
  };
  // A gradient in fp16 over half of the rows overflows later than one over all, whichever rank computes it.
  const auto alone = history(1, " --accumulation 2");
  EXPECT_GT(alone.size(), 1u) << alone;
  EXPECT_EQ(history(2, ""), alone);
}

TEST_F(Ranks, GoOnInAnotherNumber) {
  ASSERT_EQ(run(trained(1, "")).code, 0);
  const std::vector<double> whole = metric();
  anew();
  ASSERT_EQ(run(trained(2, "--stop-after 9")).code, 0);
  std::filesystem::rename(folder / "run", folder / "begun");
  for (const int then : {1, 4}) {
    anew();
    std::filesystem::copy(folder / "begun", folder / "run", std::filesystem::copy_options::recursive);
    const Ran ran = run(trained(then, "--resume"));
    ASSERT_EQ(ran.code, 0) << ran.err;
    expect_near(metric(), whole, 1e-5);
  }
  // With the same number it continues bit for bit, including random numbers.
  anew();
  const auto uninterrupted = of_ranks(run(own(2, "noise=1")), "weights");
  anew();
  ASSERT_EQ(run(own(2, "noise=1 stop=7")).code, 0);
  const Ran resumed = run(own(2, "noise=1 resume=1"));
  EXPECT_EQ(of_ranks(resumed, "weights"), uninterrupted) << resumed.out;
  ASSERT_EQ(uninterrupted.size(), 2u);
}

TEST_F(Ranks, StopTogetherWhenOneIsAskedTo) {
  const Ran ran = run(own(2, "leave=6"));
  EXPECT_EQ(ran.code, 143) << ran.out << ran.err;
  const std::map<int, std::string> ends = of_ranks(ran, "ended");
  ASSERT_EQ(ends.size(), 2u) << ran.out;
  for (const auto& [rank, end] : ends) EXPECT_EQ(end, " at 7: interrupted, resumable") << rank;
  EXPECT_EQ(run(own(2, "resume=1")).code, 0);
}

// Small tensors share a message, whatever the kinds of tensors between them.
TEST_F(Ranks, AddUpTensorsOfAllKinds) {
  for (const int ranks : {2, 4}) {
    const Ran ran = run(own(ranks, "sums=1"));
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_EQ(of_ranks(ran, "sums ").size(), static_cast<std::size_t>(ranks));
    for (const auto& [rank, sums] : of_ranks(ran, "sums ")) EXPECT_EQ(sums, "right") << rank;
  }
}

// MPI's own waiting uses all free processor time in those two seconds.
TEST_F(Ranks, WaitWithoutWorking) {
  const Ran ran = run(own(2, "late=1"));
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_LT(std::stod(of_ranks(ran, "worked ").at(1)), 0.5) << ran.out;
}

TEST_F(Ranks, EndTogetherWhereOneOfThemHasNoBatch) {
  const Ran ran = run("timeout -k 5 600 " + own(2, "lack=6"));
  EXPECT_EQ(ran.code, 3) << ran.out << ran.err;
  const std::vector<std::string> errors = lines(ran, "error of rank ");
  ASSERT_EQ(errors.size(), 1u) << ran.out;
  EXPECT_TRUE(errors[0].starts_with("1: sample row 48: x holds a number that is not finite")) << errors[0];
}

TEST_F(Ranks, EndWhereOneOfThemDies) {
  const Ran ran = run("timeout -k 5 600 " + own(2, "die=6"));
  EXPECT_NE(ran.code, 0);
  EXPECT_NE(ran.code, 124) << "it hung";
  EXPECT_NE((ran.out + ran.err).find("signal 9"), std::string::npos) << ran.out << ran.err;
  EXPECT_TRUE(of_ranks(ran, "ended").empty());
}

TEST_F(Ranks, SayThatTheirWeightsDiffer) {
  const Ran ran = run(own(2, "drift=6 steps=40"));
  EXPECT_EQ(ran.code, 70) << ran.out << ran.err;
  const std::vector<std::string> errors = lines(ran, "error of rank ");
  ASSERT_EQ(errors.size(), 1u) << ran.out;
  EXPECT_NE(errors[0].find("0: step 20: weights, data or settings are not the same on all ranks"),
            std::string::npos)
      << errors[0];
}

TEST_F(Ranks, RefuseInOneLine) {
  const auto lines_of_ours = [](const Ran& ran) {
    std::vector<std::string> found;
    std::istringstream in(ran.err);
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("nanquest-trainer: ")) found.push_back(line);
    return found;
  };
  const std::pair<std::string, std::string> refused[] = {
      {trained(4, "--batch-size 6"), "batch-size 6 can't be split over 4 ranks (make the batch size"},
      {trained(2, "--accumulation 8"), "batch-size 8 can't be split over 2 ranks in 8 micro-batches each"},
      {trained(2, "--lr fast"), "lr"},
      {trained(2, "--data nowhere"), "nowhere"},
      {on(2, command("rehearse run")), "rehearse is one process, and this is one of 2"},
      {"RANK=0 WORLD_SIZE=2 " + command("--data x"), "-m nanquest train"},
  };
  for (const auto& [full, words] : refused) {
    const Ran ran = run(full);
    EXPECT_EQ(ran.code, words == "nowhere" ? 3 : 2) << full << ran.err;
    const std::vector<std::string> said = lines_of_ours(ran);
    ASSERT_EQ(said.size(), 1u) << full << ran.err;
    EXPECT_NE(said[0].find(words), std::string::npos) << said[0];
    EXPECT_FALSE(std::filesystem::exists(folder / "run")) << full;
  }
}

}  // namespace
}  // namespace nanquest::trainer
