// Samples that are left out: by their ids, and because of their contents.
#include <ATen/ATen.h>

#include <limits>

#include "tests/trainer/loop_fixture.h"
#include "trainer/task/quarantine.h"
#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

using test::Folder;

TEST(Quarantine, ReadsIdsAndAppendsNewOnesBelowAReason) {
  const Folder folder;
  const std::string path = folder / "ids.txt";
  const std::string before = "# by hand\na%20b.txt@0\r\n\n  c.txt@16 # why\n";
  test::write_file(path, before);
  auto quarantine = Quarantine::open(path);
  ASSERT_TRUE(quarantine) << quarantine.error().text();
  EXPECT_EQ(quarantine->size(), 2u);
  EXPECT_TRUE(quarantine->holds("a b.txt@0"));
  EXPECT_TRUE(quarantine->holds("c.txt@16"));
  ASSERT_TRUE(quarantine->add({"c.txt@16", "d"}, "step 3: policy skip"));
  ASSERT_TRUE(quarantine->add({"d"}, "once more"));
  EXPECT_EQ(test::read_file(path), before + "# step 3: policy skip\nd\n");
  EXPECT_TRUE(Quarantine::open(path)->holds("d"));
}

// As nanquest.quarantine writes it: index, data set, comment. An unreadable line is named.
TEST(Quarantine, ReadsWhatAttachedProgramsWrite) {
  const Folder folder;
  const std::string path = folder / "ids.txt";
  test::write_file(
      path,
      "# Samples that made a non-finite step\n13 Rows[240]  # step 3 of runs/a, 2026-01-02 10:00\n"
      "# step 4 of runs/a, 2026-01-02 10:00: ids unknown: no loader\n14\none two three\n100%.txt@5\n");
  auto quarantine = Quarantine::open(path);
  ASSERT_TRUE(quarantine) << quarantine.error().text();
  EXPECT_EQ(quarantine->size(), 3u);
  for (const char* id : {"13", "14", "100%.txt@5"}) EXPECT_TRUE(quarantine->holds(id)) << id;
  ASSERT_EQ(quarantine->remarks().size(), 1u);
  EXPECT_NE(quarantine->remarks()[0].find(path + ": line 5 is not understood"), std::string::npos);
}

TEST(Quarantine, EveryIdComesBackFromTheFile) {
  const Folder folder;
  const std::vector<std::string> odd = {
      "two\nlines", "# like a comment", "a b", "50%20@1", "größe@0", "a#b\t", "%"};
  ASSERT_TRUE(Quarantine::open(folder / "ids.txt")->add(odd, "odd"));
  auto quarantine = Quarantine::open(folder / "ids.txt");
  EXPECT_EQ(quarantine->size(), odd.size());
  for (const std::string& id : odd) EXPECT_TRUE(quarantine->holds(id)) << id;
  EXPECT_TRUE(quarantine->remarks().empty());
}

TEST(Quarantine, IsMadeWhereItIsNotAndRefusedWhereItCantBe) {
  const Folder folder;
  EXPECT_EQ(Quarantine::open(folder / "new.txt")->size(), 0u);
  EXPECT_TRUE(std::filesystem::exists(folder / "new.txt"));
  for (const std::string& path : {folder / "no/such/ids.txt", folder.path()}) {
    const auto refused = Quarantine::open(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::io);
    EXPECT_NE(refused.error().message.find(path), std::string::npos);
  }
  test::write_file(folder / "binary", std::string("a\0b", 3));
  EXPECT_EQ(Quarantine::open(folder / "binary").error().code, ErrorCode::bad_file);
}

TEST(Faults, TokensTargetsAndLengthsAreLookedAtRowByRow) {
  at::Tensor tokens = at::zeros({6, 4}, at::kLong), targets = tokens.clone();
  tokens[1][2] = 256;
  targets[2][3] = -1;
  targets[3].fill_(-100);
  targets[4][0] = -100;  // some may be left out
  const auto faults = token_faults(tokens, targets, 256, 4);
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].row, 1);
  EXPECT_EQ(faults[0].what, "tokens holds 256 at 2, not one of 256");
  EXPECT_EQ(faults[1].what, "targets holds -1 at 3, not one of 256");
  EXPECT_EQ(faults[2].what, "no target is left in it");
  EXPECT_EQ(token_faults(tokens, targets, 256, 3).size(), 6u) << "longer than the model";
}

TEST(Faults, NumbersThatAreNotFiniteAreFoundByDefault) {
  at::Tensor x = at::ones({3, 2});
  x[1][0] = std::numeric_limits<float>::quiet_NaN();
  const auto faults = finite_faults({{{"x", x}, {"label", at::ones({3}, at::kLong)}}, {}, {}});
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].row, 1);
  EXPECT_EQ(faults[0].what, "x holds a number that is not finite");
}

/// Sums rows of a table into one weight and records which it saw; row 5 of 12 is NaN.
class Rows final : public Task {
 public:
  explicit Rows(std::vector<std::int64_t>* seen) : seen_(seen) { x_[5] = NAN; }
  NamedTensors parameters() const override { return {{"w", w_}}; }
  std::int64_t train_samples() const override { return 12; }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    const at::Tensor rows = at::arange(position, position + size).remainder(12);
    Batch batch{{{"row", rows}, {"x", x_.index_select(0, rows)}}, {}, {}};
    for (std::int64_t i = 0; i < size; ++i) batch.ids.push_back("row " + std::to_string((position + i) % 12));
    return batch;
  }
  std::int64_t loss_count(const Batch& batch) const override { return batch.tensors[0].second.size(0); }
  at::Tensor loss_sum(const NamedTensors& t, bool) override {
    for (std::int64_t i = 0; i < t[0].second.size(0); ++i)
      seen_->push_back(t[0].second[i].item<std::int64_t>());
    return (t[1].second * w_).sum();
  }

 private:
  std::vector<std::int64_t>* seen_;
  at::Tensor x_ = at::ones({12}), w_ = at::ones({1}).set_requires_grad(true);
};

/// Each with and without batches made ahead.
class RowsLoop : public testing::TestWithParam<bool> {
 protected:
  Result<Summary> train(LoopConfig config) {
    seen.clear();
    told.clear();
    config.prefetch = GetParam();
    auto task = std::make_unique<Rows>(&seen);
    auto adamw = make_adamw(task->parameters(), {});
    auto trainer = Trainer::create(std::move(config), std::move(task), std::move(*adamw),
                                   {{}, [this](const std::string& line) { told += line + '\n'; }});
    if (!trainer) return trainer.error();
    return (*trainer)->run();
  }
  const Folder folder;
  std::vector<std::int64_t> seen;
  std::string told;
};

TEST_P(RowsLoop, AnUnfitSampleIsNamedOnceAndTheNextOneTakesItsPlace) {
  LoopConfig config = test::quick_config(folder, 6);
  config.level = Level::off;
  const auto summary = train(config);
  ASSERT_TRUE(summary) << summary.error().text();
  const std::vector<std::int64_t> two_passes = {0, 1, 2, 3, 4, 6, 7, 8, 9,  10, 11, 0,
                                                1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 0,  1};
  EXPECT_EQ(seen, two_passes);
  EXPECT_NE(told.find("sample row 5: x holds a number that is not finite; it is left out\n"),
            std::string::npos)
      << told;
  EXPECT_EQ(told.find("row 5"), told.rfind("row 5")) << "once";
  EXPECT_EQ(summary->skipped_samples, std::vector<std::string>{"row 5"});
  EXPECT_EQ(summary->exit, ExitCode::finding);
  EXPECT_EQ(summary->counters.incidents, 0);
}

TEST_P(RowsLoop, WithPolicyStopItEndsTheRunByName) {
  LoopConfig config = test::quick_config(folder, 6);
  config.policy = Policy::stop;
  const auto summary = train(config);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, ErrorCode::bad_file);
  EXPECT_NE(summary.error().message.find("sample row 5: x holds"), std::string::npos)
      << summary.error().text();
  EXPECT_TRUE(std::filesystem::exists(folder / "run/checkpoints/state-00000001.safetensors"))
      << "what was learned is kept";
}

TEST_P(RowsLoop, WhatIsInQuarantineIsNeverUsedAndSkippedBatchesGoThere) {
  LoopConfig config = test::quick_config(folder, 4);
  config.quarantine = folder / "ids.txt";
  config.policy = Policy::skip;
  test::write_file(config.quarantine, "row%200\nrow%205\n");
  config.injections = {test::nan_loss(1)};
  const auto summary = train(config);
  ASSERT_TRUE(summary) << summary.error().text();
  // The second batch fails and is run once more for the record; its rows do not occur in the second pass.
  const std::vector<std::int64_t> wanted = {1,  2,  3, 4, 6, 7, 8,  9,  6, 7, 8, 9,
                                            10, 11, 1, 2, 3, 4, 10, 11, 1, 2, 3, 4};
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(test::read_file(config.quarantine), "row%200\nrow%205\n# batch 1 of " + config.run_dir +
                                                    ": policy skip\nrow%206\nrow%207\nrow%208\nrow%209\n");
  EXPECT_EQ(told.find("row 5"), std::string::npos) << "known, so not told again";
}

TEST_P(RowsLoop, NothingLeftIsAnErrorAndNoEndlessSearch) {
  LoopConfig config = test::quick_config(folder, 4);
  config.quarantine = folder / "ids.txt";
  std::string all;
  for (int i = 0; i < 12; ++i) all += "row%20" + std::to_string(i) + "\n";
  test::write_file(config.quarantine, all);
  const auto summary = train(config);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, ErrorCode::bad_file);
  EXPECT_NE(summary.error().message.find("none of the 12 samples may be used"), std::string::npos);
  EXPECT_NE(summary.error().hint.find(config.quarantine), std::string::npos);
}

// After an interruption and a resume, the samples are the same as without an interruption.
TEST_P(RowsLoop, AResumeGoesOnBehindTheSamplesThatWereLeftOut) {
  LoopConfig config = test::quick_config(folder, 6);
  config.stop_after = 2;
  ASSERT_TRUE(train(config));
  std::vector<std::int64_t> all = seen;
  config.stop_after = 0;
  config.resume = true;
  ASSERT_TRUE(train(config));
  all.insert(all.end(), seen.begin(), seen.end());
  EXPECT_EQ(all, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 6, 7, 8, 9,  10, 11, 0,
                                            1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 0,  1}));
}

INSTANTIATE_TEST_SUITE_P(Prefetch, RowsLoop, testing::Bool(),
                         [](const auto& info) { return info.param ? "On" : "Off"; });

}  // namespace
}  // namespace nanquest::trainer
