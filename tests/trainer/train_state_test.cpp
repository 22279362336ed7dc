// The state of a run on disk: every number of it, at any moment.
#include <ATen/ATen.h>
#include <signal.h>

#include <cmath>
#include <thread>

#include "tests/trainer/helpers.h"
#include "tests/trainer/sample_tensors.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/train_state.h"

namespace nanquest::trainer {
namespace {

TEST(TrainState, EveryNumberComesBackExactly) {
  const test::Folder folder;
  TrainState state;
  state.counters = {.optimizer_step = 11,
                    .data_position = 1LL << 40,
                    .data_steps = 13,
                    .skipped = 2,
                    .consecutive_skips = 1,
                    .incidents = 3,
                    .rollbacks = 1,
                    .tokens = 99,
                    .fell_back = true,
                    .retried = true,
                    .backoff = 0.1 + 0.2,
                    .best_eval = 1.0 / 3};
  state.scaler = {.scale = 4096, .good_steps = 17, .overflows = 5, .patience = 2, .enabled = true};
  state.tensors = test::sample_tensors();
  state.fingerprint = "model 1";
  state.data_fingerprint = "data 1";
  state.settings = {{"lr", "0.1"}, {"on-incident", "skip"}};
  state.story = {.first_loss = 1.0 / 3,
                 .first_incident_step = 7,
                 .loss_at_incident = 0.1,
                 .last_eval = std::nan(""),
                 .recent_losses = {0.1, 1e-300},
                 .incidents = {"run/incidents/a \"b\".h5"},
                 .skipped_samples = {"text.txt@17", "größe@0"},
                 .scale_history = {{3, 65536, 32768}}};
  ASSERT_TRUE(save_state(folder / "s.safetensors", state));
  auto back = load_state(folder / "s.safetensors");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(std::memcmp(&back->counters.backoff, &state.counters.backoff, sizeof(double)), 0);
  EXPECT_EQ(back->counters.best_eval, 1.0 / 3);
  EXPECT_EQ(back->counters.data_position, 1LL << 40);
  EXPECT_TRUE(back->counters.fell_back && back->counters.retried && back->scaler.enabled);
  EXPECT_EQ(back->counters.incidents, 3);
  EXPECT_EQ(back->scaler.good_steps, 17);
  EXPECT_EQ(back->scaler.patience, 2);
  EXPECT_EQ(back->fingerprint, "model 1");
  EXPECT_EQ(back->data_fingerprint, "data 1");
  EXPECT_EQ(back->settings, state.settings);
  EXPECT_EQ(back->story.first_loss, 1.0 / 3);
  EXPECT_EQ(back->story.first_incident_step, 7);
  EXPECT_EQ(back->story.loss_at_incident, 0.1);
  EXPECT_TRUE(std::isnan(back->story.last_eval));
  EXPECT_EQ(back->story.recent_losses, state.story.recent_losses);
  EXPECT_EQ(back->story.incidents, state.story.incidents);
  EXPECT_EQ(back->story.skipped_samples, state.story.skipped_samples);
  ASSERT_EQ(back->story.scale_history.size(), 1u);
  EXPECT_EQ(back->story.scale_history[0].step, 3);
  EXPECT_EQ(back->story.scale_history[0].from, 65536);
  EXPECT_EQ(back->story.scale_history[0].to, 32768);
  ASSERT_TRUE(write_safetensors(folder / "w.safetensors", test::sample_tensors(), {}));
  EXPECT_EQ(load_state(folder / "w.safetensors").error().code,
            ErrorCode::bad_file);  // weights are not a state
}

TEST(TrainState, KilledAtAnyMomentLeavesACompleteCheckpoint) {
  const test::Folder folder;
  const std::string path = folder / "state.safetensors";
  TrainState state;
  state.tensors = {{"w", at::zeros({200000})}};
  ASSERT_TRUE(save_state(path, state));
  std::int64_t last = 0;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // No ATen op in the child, because threads do not survive the fork. Only bytes are copied and written.
      auto* w = state.tensors[0].second.mutable_data_ptr<float>();
      for (std::int64_t i = last + 1;; ++i) {
        state.counters.optimizer_step = i;
        for (int k = 0; k < 200000; ++k) w[k] = static_cast<float>(i);
        if (!save_state(path, state)) _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    auto back = load_state(path);
    ASSERT_TRUE(back) << back.error().text();
    const at::Tensor w = back->tensors[0].second;
    EXPECT_EQ(w.min().item<double>(), static_cast<double>(back->counters.optimizer_step));
    EXPECT_EQ(w.max().item<double>(), static_cast<double>(back->counters.optimizer_step));
    EXPECT_GE(back->counters.optimizer_step, last);
    last = back->counters.optimizer_step;
  }
  EXPECT_GT(last, 0);
}

}  // namespace
}  // namespace nanquest::trainer
