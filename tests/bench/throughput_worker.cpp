// The trainer at level guard, standing ready for throughput_bench.py: a line "N" on stdin makes N steps; the
// answer is their seconds, and how many of them the processor worked on it.
//
// usage: throughput_worker 4x128|gpt2 written|fused|prefetch TEXT RUN_DIR THREADS
// The first line on stdout says that it is ready.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>

#include "trainer/loop/trainer.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/precision/device.h"
#include "trainer/text/text_task.h"

namespace nanquest::bench {
namespace {

using namespace nanquest::trainer;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWarmUp =
    4;  // the first step makes gradients and moments, the next find memory for them

template <class T>
T need(Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "throughput_worker: %s\n", result.error().text().c_str());
  std::exit(exit_code(result.error().code));
}

/// Answers what was asked for and waits for the next line; the program ends with its input.
class Turns {
 public:
  void after_step() {
    if (--left_ > 0) return;
    if (asked_) {
      const std::chrono::duration<double> passed = Clock::now() - began_;
      std::printf("%.9f %.9f\n", passed.count(),
                  static_cast<double>(std::clock() - worked_) / CLOCKS_PER_SEC);
    } else {
      std::puts("ready");
    }
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) std::_Exit(0);  // a checkpoint of it would be of no use
    asked_ = true;
    left_ = std::stoll(line);
    began_ = Clock::now();
    worked_ = std::clock();
  }

 private:
  std::int64_t left_ = kWarmUp;
  bool asked_ = false;
  Clock::time_point began_;
  std::clock_t worked_ = 0;
};

int work(const std::string& name, const std::string& kind, const std::string& text,
         const std::string& run_dir, int threads) {
  const bool gpt2 = name == "gpt2";
  set_numerics(42, {.threads = threads});
  GptConfig model;  // 4 blocks of width 128
  if (gpt2) model = {.depth = 12, .width = 768, .heads = 12, .context = 1024, .vocabulary = 50257};
  if (kind != "written") model.attention = AttentionForm::fused;
  LoopConfig config;
  config.steps = 1 << 20;
  config.batch_size = gpt2 ? 1 : 8;
  config.schedule = {.peak = 3e-4, .total_steps = config.steps, .decay = Decay::constant};
  config.eval_every = config.eval_samples = 0;
  config.save_minutes = 0;
  config.prefetch = kind == "prefetch";
  config.run_dir = run_dir;
  TextData data = need(TextData::open(text, {.context = gpt2 ? 512 : 128}));
  auto task = make_text_task(need(make_gpt(model, 42, at::kCPU)), std::move(data));
  auto optimizer = need(make_adamw(task->parameters(), {}));
  Turns turns;
  auto trainer = need(Trainer::create(config, std::move(task), std::move(optimizer),
                                      {[&](const StepEvent&) { turns.after_step(); }, {}}));
  (void)need(trainer->run());
  return 0;
}

}  // namespace
}  // namespace nanquest::bench

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: throughput_worker 4x128|gpt2 written|fused|prefetch TEXT RUN_DIR THREADS\n");
    return 2;
  }
  return nanquest::bench::work(argv[1], argv[2], argv[3], argv[4], std::atoi(argv[5]));
}
