/// A small run for the loop's tests: tiny GPT, tiny text, everything in a temporary folder.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "tests/trainer/helpers.h"
#include "trainer/loop/trainer.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/precision/device.h"
#include "trainer/text/text_task.h"

namespace nanquest::trainer::test {

inline LoopConfig quick_config(const Folder& folder, std::int64_t steps) {
  LoopConfig c;
  c.steps = steps;
  c.batch_size = 4;
  c.schedule = {.peak = 3e-3, .warmup_steps = 2, .total_steps = steps};
  c.run_dir = folder / "run";
  c.eval_every = 0;
  c.eval_samples = 8;
  c.ring_every = 4;
  c.scaler.initial = 1024;
  return c;
}

/// A loss that is NaN, from batch `at` on for `count` batches.
inline Injection nan_loss(std::int64_t at, std::int64_t count = 1, bool amp_only = false) {
  return {Injection::Kind::nan_loss, at, count, amp_only};
}

/// The reports of a run, and the trainer itself.
struct Run {
  std::vector<StepEvent> steps;
  std::vector<std::string> messages;
  std::unique_ptr<Trainer> trainer;
  Summary summary;
};

inline TextData quick_data(const Folder& folder) {
  write_file(folder / "data/text.txt", some_text(6000));
  return *TextData::open(folder / "data/text.txt", {.context = 16, .seed = 42, .eval_every = 10});
}

inline std::unique_ptr<Model> quick_model(double dropout = 0.0) {
  return std::move(
      *make_gpt({.depth = 1, .width = 16, .heads = 2, .context = 16, .dropout = dropout}, 42, at::kCPU));
}

/// A trainer for `model` on the quick data, with AdamW.
inline Result<std::unique_ptr<Trainer>> make_trainer(const Folder& folder, const LoopConfig& config,
                                                     std::unique_ptr<Model> model, Listener listener = {}) {
  set_numerics(config.seed, {.deterministic = true, .threads = 1});
  std::unique_ptr<Task> task = make_text_task(std::move(model), quick_data(folder));
  auto optimizer = make_adamw(task->parameters(), {});
  EXPECT_TRUE(optimizer) << optimizer.error().text();
  return Trainer::create(config, std::move(task), std::move(*optimizer), std::move(listener));
}

/// Trains; the listener's lists and the trainer stay in the result.
inline std::unique_ptr<Run> train(const Folder& folder, const LoopConfig& config,
                                  std::unique_ptr<Model> model) {
  auto run = std::make_unique<Run>();
  Run* told = run.get();
  auto trainer = make_trainer(folder, config, std::move(model),
                              {[told](const StepEvent& e) { told->steps.push_back(e); },
                               [told](const std::string& m) { told->messages.push_back(m); }});
  EXPECT_TRUE(trainer) << trainer.error().text();
  run->trainer = std::move(*trainer);
  auto summary = run->trainer->run();
  EXPECT_TRUE(summary) << summary.error().text();
  run->summary = *summary;
  return run;
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.nbytes() == y.nbytes() && std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// Names of tensors whose bits differ.
inline std::vector<std::string> differences(const TrainState& a, const TrainState& b) {
  std::vector<std::string> names;
  EXPECT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size() && i < b.tensors.size(); ++i)
    if (!same_bits(a.tensors[i].second, b.tensors[i].second)) names.push_back(a.tensors[i].first);
  return names;
}

}  // namespace nanquest::trainer::test
