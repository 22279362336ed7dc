// The trainer at level guard for throughput_bench.py, in turns (turns.h).
//
// usage: throughput_worker 4x128|gpt2 written|fused|prefetch TEXT RUN_DIR THREADS
// The first line on stdout says that it is ready.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/bench/turns.h"
#include "trainer/loop/trainer.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/precision/device.h"
#include "trainer/text/text_task.h"

namespace nanquest::bench {
namespace {

using namespace nanquest::trainer;

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
