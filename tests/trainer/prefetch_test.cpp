// Batches that are made ahead on a separate thread: the same batches, and the same ends of a run.
#include "trainer/loop/prefetch.h"

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/trainer/loop_fixture.h"

namespace nanquest::trainer {
namespace {

using test::differences;
using test::Folder;
using test::nan_loss;
using test::quick_config;
using test::quick_model;
using test::train;

/// Numbers at a position, and a log of the requests.
class NumberTask final : public Task {
 public:
  struct Log {
    std::mutex mutex;
    std::condition_variable changed;
    std::int64_t asked = -1;  ///< largest position that a batch was begun at
    std::set<std::thread::id> threads;
    std::atomic<int> at_once = 0;
    bool two_at_once = false;
    std::int64_t fails_at = -1;
    bool steps_wait = false;  ///< a step ends only when the batch behind it was begun
    std::vector<std::int64_t> seen;
  };
  explicit NumberTask(Log& log) : log_(log) {}

  NamedTensors parameters() const override { return {{"w", w_}}; }
  std::int64_t train_samples() const override { return 1000; }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    if (++log_.at_once > 1) log_.two_at_once = true;
    {
      const std::lock_guard lock(log_.mutex);
      log_.asked = std::max(log_.asked, position);
      log_.threads.insert(std::this_thread::get_id());
    }
    log_.changed.notify_all();
    const bool fails = log_.fails_at >= position && log_.fails_at < position + size;
    --log_.at_once;
    if (fails) throw std::runtime_error("sample " + std::to_string(log_.fails_at) + " can't be read\nat all");
    Batch batch{{{"x", at::arange(position, position + size, at::kFloat)}}, {}, {}};
    for (std::int64_t i = 0; i < size; ++i) batch.ids.push_back(std::to_string(position + i));
    return batch;
  }
  std::int64_t loss_count(const Batch& batch) const override { return batch.tensors[0].second.size(0); }
  at::Tensor loss_sum(const NamedTensors& t, bool) override {
    const auto first = static_cast<std::int64_t>(t[0].second[0].item<float>());
    log_.seen.push_back(first);
    if (log_.steps_wait) {
      std::unique_lock lock(log_.mutex);
      EXPECT_TRUE(log_.changed.wait_for(lock, std::chrono::seconds(20), [&] { return log_.asked > first; }))
          << "nobody makes the next batch while this one is learned from";
    }
    return (t[0].second * w_).sum();
  }

 private:
  Log& log_;
  at::Tensor w_ = at::ones({1}).set_requires_grad(true);
};

Result<Summary> count(const Folder& folder, NumberTask::Log& log, bool prefetch, std::int64_t steps,
                      const std::function<void(Trainer&, const StepEvent&)>& on_step = {}) {
  LoopConfig config = quick_config(folder, steps);
  config.level = Level::off;
  config.prefetch = prefetch;
  auto task = std::make_unique<NumberTask>(log);
  auto adamw = make_adamw(task->parameters(), {});
  Trainer* running = nullptr;
  auto trainer = Trainer::create(config, std::move(task), std::move(*adamw),
                                 {[&](const StepEvent& e) {
                                    if (on_step) on_step(*running, e);
                                  },
                                  {}});
  if (!trainer) return trainer.error();
  running = trainer->get();
  return running->run();
}

TEST(Prefetch, TheNextBatchIsMadeWhileAStepRunsAndNeverTwoAtOnce) {
  const Folder folder;
  NumberTask::Log log;
  log.steps_wait = true;
  ASSERT_TRUE(count(folder, log, true, 5));
  EXPECT_EQ(log.seen, (std::vector<std::int64_t>{0, 4, 8, 12, 16}));
  EXPECT_FALSE(log.two_at_once);
  EXPECT_EQ(log.threads.size(), 2u) << "the first batch is made by who needs it, the others by the thread";
  NumberTask::Log plain;
  const Folder other;
  ASSERT_TRUE(count(other, plain, false, 5));
  EXPECT_EQ(plain.seen, log.seen);
  EXPECT_EQ(plain.threads, std::set{std::this_thread::get_id()});
}

TEST(Prefetch, AnErrorComesWithItsStepAndIsTheSameAsWithout) {
  std::vector<std::string> errors;
  for (const bool prefetch : {false, true}) {
    const Folder folder;
    NumberTask::Log log;
    log.fails_at = 13;  // in the fourth batch, which is made while the third is learned from
    const auto summary = count(folder, log, prefetch, 6);
    ASSERT_FALSE(summary);
    errors.push_back(summary.error().text());
    EXPECT_EQ(log.seen, (std::vector<std::int64_t>{0, 4, 8})) << "the third is learned from all the same";
    EXPECT_TRUE(std::filesystem::exists(folder / "run/checkpoints/state-00000003.safetensors")) << prefetch;
  }
  EXPECT_EQ(errors[0], "step 3: sample 13 can't be read");
  EXPECT_EQ(errors[1], errors[0]);
  // An error in a batch that no step reaches is ignored.
  const Folder folder;
  NumberTask::Log log;
  log.fails_at = 13;
  EXPECT_TRUE(count(folder, log, true, 3));
}

TEST(Prefetch, AnInterruptedRunEndsAndAnExceptionOfTheStepDoesToo) {
  const Folder folder, other;
  NumberTask::Log log;
  log.steps_wait = true;
  const auto stopped = count(folder, log, true, 100, [](Trainer& t, const StepEvent& e) {
    if (e.step == 2) t.request_stop(130);
  });
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->counters.data_position, 12) << "of what was learned from, not of what was made";
  EXPECT_EQ(static_cast<int>(stopped->exit), 130);
  const auto thrown = count(other, log, true, 100, [](Trainer&, const StepEvent& e) {
    if (e.step == 2) throw std::runtime_error("the listener has had enough");
  });
  ASSERT_FALSE(thrown);
  EXPECT_NE(thrown.error().message.find("the listener has had enough"), std::string::npos);
}

TEST(Prefetch, WhatWasMadeForAnotherPositionIsNotTaken) {
  NumberTask::Log log;
  log.fails_at = 100;
  const NumberTask task(log);
  Prefetcher prefetcher(task);
  for (const auto& [asked, size] : {std::pair{8, 4}, std::pair{4, 3}, std::pair{100, 4}}) {
    prefetcher.ahead(asked, size);
    const Samples samples = prefetcher.take(4, 4);
    EXPECT_TRUE(at::equal(samples.batch.tensors[0].second, at::arange(4, 8, at::kFloat)));
  }
  prefetcher.ahead(100, 4);
  EXPECT_THROW((void)prefetcher.take(100, 4), std::runtime_error);
  EXPECT_EQ(prefetcher.take(4, 1).batch.ids, std::vector<std::string>{"4"}) << "an error is told once";
}

// Everything that changes the data's position other than batch after batch.
TEST(Prefetch, SkipsRollbacksRetriesAndResumesAreTheSameBitForBit) {
  for (const Policy policy : {Policy::skip, Policy::rollback, Policy::retry_fp32, Policy::fallback_fp32}) {
    std::vector<TrainState> ends;
    std::vector<std::vector<std::string>> skipped;  // offsets alone: each run has its own folder
    for (const bool prefetch : {false, true}) {
      const Folder folder;
      LoopConfig config = quick_config(folder, 14);
      config.prefetch = prefetch;
      config.policy = policy;
      config.amp = at::kHalf;
      config.level = policy == Policy::skip ? Level::trace : Level::guard;
      config.quarantine = folder / "ids.txt";
      config.injections = {nan_loss(5, 1, true), nan_loss(9)};
      config.eval_every = 3;
      config.stop_after = 7;
      (void)train(folder, config, quick_model(0.3));
      config.stop_after = 0;
      config.resume = true;
      ends.push_back(train(folder, config, quick_model(0.3))->trainer->save());
      skipped.emplace_back();
      for (const std::string& id : ends.back().story.skipped_samples)
        skipped.back().push_back(id.substr(id.rfind('@')));
    }
    EXPECT_EQ(differences(ends[0], ends[1]), std::vector<std::string>{}) << static_cast<int>(policy);
    EXPECT_EQ(ends[0].counters.data_position, ends[1].counters.data_position);
    EXPECT_EQ(skipped[0], skipped[1]);
    EXPECT_FALSE(skipped[0].empty());
    EXPECT_EQ(ends[0].counters.skipped, ends[1].counters.skipped);
  }
}

}  // namespace
}  // namespace nanquest::trainer
