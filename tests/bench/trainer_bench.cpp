// What the harness costs: a step of the trainer at level guard (guard, history, weight norms, states kept for
// a rollback, checks) against the same model, data and optimizer in a bare loop with the usual clipping. The
// bare step runs after each of the trainer's, so both see the same machine.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "tests/bench/report.h"
#include "trainer/loop/prefetch.h"
#include "trainer/loop/trainer.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/precision/device.h"
#include "trainer/text/next_token.h"
#include "trainer/text/text_task.h"

namespace nanquest::bench {
namespace {

using namespace nanquest::trainer;

struct Size {
  const char* name;
  GptConfig model;
  std::int64_t batch, steps;
  double goal;
};

template <class T>
T need(Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  std::exit(exit_code(result.error().code));
}

/// The loop that people write.
class Bare {
 public:
  Bare(const Size& size, TextData data)
      : model_(need(make_gpt(size.model, 42, at::kCPU))),
        data_(std::move(data)),
        optimizer_(need(make_adamw(model_->parameters(), {}))),
        batch_(size.batch) {}

  void step() {
    const TokenRows batch = data_.train_batch(position_, batch_);
    position_ += batch_;
    optimizer_->clear_gradients();
    const at::Tensor loss = next_token_loss(model_->forward(batch.tokens, true), batch.targets) /
                            static_cast<double>(batch.targets.numel());
    loss.backward();
    std::vector<at::Tensor> gradients;
    for (const auto& [name, p] : optimizer_->parameters()) gradients.push_back(p.grad());
    const double norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2))).item<double>();
    if (norm > 1) optimizer_->scale_gradients(1 / (norm + 1e-6));
    optimizer_->step(3e-4);
    seen_ += loss.item<double>();
  }

 private:
  std::unique_ptr<Model> model_;
  TextData data_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t batch_, position_ = 0;
  double seen_ = 0;
};

void measure(Size size, const std::string& directory) {
  if (one_round()) size.steps = 8;
  const TextData data = need(TextData::open(directory + "/text.txt", {.context = size.model.context}));
  LoopConfig config;
  config.steps = size.steps;
  config.batch_size = size.batch;
  config.schedule = {.peak = 3e-4, .warmup_steps = 1, .total_steps = size.steps};
  config.eval_every = 0;
  config.eval_samples = 0;
  config.run_dir = directory + "/" + size.name;
  Bare bare(size, data);
  std::vector<double> ratios, milliseconds;
  auto started = std::chrono::steady_clock::now();
  const Listener listener{[&](const StepEvent& event) {
                            const std::chrono::duration<double> ours =
                                std::chrono::steady_clock::now() - started;
                            const double theirs = seconds([&] { bare.step(); });
                            if (event.step >= 5) ratios.push_back(ours.count() / theirs);
                            if (event.step >= 5) milliseconds.push_back(1e3 * theirs);
                            started = std::chrono::steady_clock::now();
                          },
                          {}};
  auto task = make_text_task(need(make_gpt(size.model, 42, at::kCPU)), data);
  auto optimizer = need(make_adamw(task->parameters(), {}));
  auto trainer = need(Trainer::create(config, std::move(task), std::move(optimizer), listener));
  started = std::chrono::steady_clock::now();
  (void)need(trainer->run());
  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("# trainer %s: time over that of the same step in a bare loop, which takes %.2f ms\n",
              size.name, milliseconds[milliseconds.size() / 2]);
  report(std::string("trainer_") + size.name + "_vs_bare_loop", ratios, size.goal, Better::lower);
  // What --prefetch could save at most: it is off by default as long as this is next to nothing.
  std::vector<double> shares;
  for (std::int64_t i = 0; i < rounds(100); ++i)
    shares.push_back(seconds([&] { (void)load(trainer->task(), i * size.batch, size.batch); }) * 1e3 /
                     milliseconds[milliseconds.size() / 2]);
  report(std::string("trainer_") + size.name + "_batch_share", shares, 0.01, Better::lower);
}

}  // namespace
}  // namespace nanquest::bench

int main() {
  nanquest::trainer::set_numerics(42, {.threads = 1});
  using nanquest::bench::Size;
  std::string pattern = (std::filesystem::temp_directory_path() / "nanquest-bench-XXXXXX").string();
  const std::string directory = mkdtemp(pattern.data());
  std::ofstream text(directory + "/text.txt");
  for (int i = 0; i < 4000; ++i) text << "line " << i * i << " of a text to train on\n";
  text.close();
  nanquest::bench::measure({"5ms", {.depth = 2, .width = 64, .heads = 2, .context = 64}, 2, 300, 1.10},
                           directory);
  nanquest::bench::measure({"50ms", {.depth = 4, .width = 128, .heads = 4, .context = 128}, 8, 80, 1.03},
                           directory);
  std::filesystem::remove_all(directory);
  return 0;
}
