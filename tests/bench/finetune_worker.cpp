// nanquest-trainer finetune at level guard for finetune_bench.py.
//
// usage: finetune_worker train FOLDER TOKENS.bin RUN_DIR whole|lora BATCH CONTEXT THREADS   turns (turns.h)
//        finetune_worker incident FOLDER TOKENS.bin RUN_DIR   "BYTES BYTES": of an incident's file with
//        adapters, and of what
//                                                             trains (weights and moments)
//        finetune_worker load FOLDER whole|lora   "SECONDS BYTES": how long loading takes, and what it leaves
//        in memory finetune_worker read FILE                "SECONDS BYTES": how long it takes to read the
//        file into memory
#include <cstring>
#include <filesystem>
#include <vector>

#include "tests/bench/turns.h"
#include "trainer/program/parts.h"

namespace nanquest::bench {
namespace {

using namespace nanquest::trainer;

/// A run that nothing interrupts.
void begin(Parts& parts, char** given) {
  parts.folder = given[0];
  parts.path = given[1];
  parts.loop.run_dir = given[2];
  parts.loop.eval_every = parts.loop.eval_samples = parts.data.eval_every = 0;
  parts.loop.save_minutes = 0;
}

int incident(char** given) {
  Parts parts(ModelKind::pretrained);
  begin(parts, given);
  parts.pretrained.lora.on = true;
  parts.loop.batch_size = 1;
  parts.context = 16;
  parts.loop.steps = 3;
  parts.loop.policy = Policy::skip;
  parts.loop.injections.push_back({.kind = Injection::Kind::nan_loss, .at = 1});
  auto trainer = need(make_trainer(parts, {}));
  std::int64_t trained = 0;
  for (const auto& [name, p] : trainer->task().parameters())
    trained += 3 * static_cast<std::int64_t>(p.nbytes());
  const Summary summary = need(trainer->run());
  std::printf("%ju %lld\n", std::filesystem::file_size(summary.incidents.at(0)),
              static_cast<long long>(trained));
  return 0;
}

int train(char** given) {
  Turns turns;
  Parts parts(ModelKind::pretrained);
  begin(parts, given);
  parts.pretrained.lora.on = std::strcmp(given[3], "lora") == 0;
  parts.loop.batch_size = std::atoll(given[4]);
  parts.context = std::atoll(given[5]);
  parts.numerics.threads = std::atoi(given[6]);
  parts.loop.steps = 1 << 20;
  parts.schedule.decay = Decay::constant;
  auto trainer = need(make_trainer(parts, {[&](const StepEvent&) { turns.after_step(); }, {}}));
  (void)need(trainer->run());
  return 0;
}

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Both begin with the files in the system's cache: the benchmark has just written them.
int load(const char* folder, const char* how) {
  PretrainedOptions options;
  options.lora.on = std::strcmp(how, "lora") == 0;
  // The file's pages of weights that train are read once and then released to the system.
  const std::string memory = options.lora.on ? "VmRSS" : "RssAnon";
  const std::int64_t before = status_bytes(memory);
  const auto begin = std::chrono::steady_clock::now();
  const auto model = need(load_pretrained(folder, options));
  const double seconds = since(begin);
  std::printf("%.9f %lld\n", seconds, static_cast<long long>(status_bytes(memory) - before));
  return model->parameters().empty() ? 1 : 0;
}

int read(const char* path) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<char> bytes(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::printf("%.9f %zu\n", since(begin), bytes.size());
  return file ? 0 : 1;
}

}  // namespace
}  // namespace nanquest::bench

int main(int argc, char** argv) {
  using namespace nanquest::bench;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "train" && argc == 9) return train(argv + 2);
  if (what == "incident" && argc == 5) return incident(argv + 2);
  if (what == "load" && argc == 4) return load(argv[2], argv[3]);
  if (what == "read" && argc == 3) return read(argv[2]);
  std::fputs("usage: see the sources' first lines\n", stderr);
  return 2;
}
