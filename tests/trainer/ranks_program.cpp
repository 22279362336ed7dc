// A separate training program on the ranks of mpirun, for program_ranks_test: each rank prints what it has
// computed. Usage: ranks_program RUN_DIR [steps=N] [zero=ROW] [stop=N] [resume=1] [die=STEP] [leave=STEP]
// [noise=1] [drift=STEP] [sums=1] [late=1] [lack=STEP] …
//   zero: this row's feature is 0, and the logarithm that the model takes is not finite;
//   die: rank 1 is killed in this step; leave: rank 1 is asked to stop after it; drift: rank 1 changes a
//   weight after it; noise: the model draws random numbers; sums: no training, but sums of tensors of many
//   kinds; late: no training, but rank 0 comes two seconds late to where all meet; lack: rank 1 reads a NaN
//   in the batch of this step, and stops.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "probe/numerics/hash.h"
#include "trainer/loop/trainer.h"
#include "trainer/optim/adamw.h"
#include "trainer/parallel/launch.h"

namespace nanquest::trainer {
namespace {

using Arguments = std::map<std::string, std::int64_t>;

/// log(x) times one matrix; every eighth row by another one too; one weight that is not used. Each step of
/// each rank changes a buffer by its own rows.
class LogTask final : public Task {
 public:
  LogTask(const Arguments& given, std::int64_t lack) : noise_(given.contains("noise")), lack_(lack) {
    const at::Generator generator = at::detail::createCPUGenerator(7);
    x_ = at::rand({64, 8}, generator, at::kFloat) + 0.1;
    y_ = at::randn({64, 4}, generator, at::kFloat);
    weight_ = (0.3 * at::randn({8, 4}, generator, at::kFloat)).requires_grad_();
    rare_ = (0.3 * at::randn({8, 4}, generator, at::kFloat)).requires_grad_();
    if (given.contains("zero")) x_[given.at("zero")][3] = 0;
  }

  NamedTensors parameters() const override {
    return {{"weight", weight_}, {"rare.weight", rare_}, {"unused.weight", unused_}};
  }
  NamedTensors buffers() const override { return {{"seen", seen_}}; }
  std::int64_t train_samples() const override { return 64; }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    const at::Tensor rows = at::arange(position, position + size).remainder(64);
    Batch batch{{{"x", x_.index_select(0, rows)}, {"y", y_.index_select(0, rows)}, {"rows", rows}}, {}, {}};
    for (std::int64_t i = 0; i < size; ++i) batch.ids.push_back("row " + std::to_string((position + i) % 64));
    if (position == lack_ * size) batch.tensors[0].second[0][0] = std::numeric_limits<float>::quiet_NaN();
    return batch;
  }
  std::int64_t eval_samples() const override { return 40; }
  Batch eval_batch(std::int64_t first, std::int64_t size) const override {
    Batch batch = train_batch(first, size);
    batch.tensors[0].second = batch.tensors[0].second + 0.05;
    return batch;
  }
  std::int64_t loss_count(const Batch& batch) const override { return batch.tensors[1].second.numel(); }
  at::Tensor loss_sum(const NamedTensors& t, bool training) override {
    at::Tensor features = at::log(t[0].second);
    const at::Tensor rows = t[2].second.cpu();
    if (training) {
      for (std::int64_t i = 0; i < rows.numel(); ++i)
        computed += " " + std::to_string(rows[i].item<std::int64_t>());
      computed += ";";
      if (noise_) features = features * at::rand_like(features);
      const at::NoGradGuard no_grad;
      seen_.mul_(0.9).add_(rows.to(at::kFloat).mean());
    }
    const at::Tensor loss = (at::mm(features, weight_) - t[1].second).square().sum();
    const at::Tensor some = rows.remainder(8).eq(7).nonzero().squeeze(1);
    return some.numel() == 0 ? loss : loss + at::mm(features.index_select(0, some), rare_).square().sum();
  }

  std::string computed;  ///< rows of every training pass, "0 1 2; 3 4 5;"

 private:
  bool noise_;
  std::int64_t lack_;  ///< the step whose batch has a NaN; -1: none
  at::Tensor x_, y_, weight_, rare_, unused_ = at::ones({3}).requires_grad_(), seen_ = at::zeros({1});
};

std::int64_t value(const Arguments& given, const std::string& name, std::int64_t otherwise) {
  const auto found = given.find(name);
  return found == given.end() ? otherwise : found->second;
}

std::uint64_t hash_of(const NamedTensors& tensors) {
  std::uint64_t hash = 0;
  for (const auto& [name, t] : tensors) {
    const at::Tensor flat = t.detach().contiguous();
    hash = hash * 31 + hash_bytes(flat.const_data_ptr(), flat.nbytes());
  }
  return hash;
}

LoopConfig config_of(const Arguments& given, const char* run_dir, Group& ranks) {
  LoopConfig config;
  config.run_dir = run_dir;
  config.ranks = &ranks;
  config.steps = value(given, "steps", 20);
  config.stop_after = value(given, "stop", 0);
  config.resume = given.contains("resume");
  config.level = static_cast<Level>(value(given, "level", static_cast<std::int64_t>(Level::guard)));
  config.policy = static_cast<Policy>(value(given, "policy", static_cast<std::int64_t>(Policy::skip)));
  if (given.contains("lack")) config.policy = Policy::stop;
  config.batch_size = value(given, "batch", 8);
  config.micro_batches = value(given, "parts", 1);
  config.eval_every = 5;
  config.schedule = {.peak = 0.02, .warmup_steps = 2, .total_steps = config.steps};
  return config;
}

/// Tensors whose elements are whole numbers, so that sums are exact: small and large ones, more small ones
/// than go into one message, other types between them, none at all, strides.
std::vector<at::Tensor> many_kinds(std::int64_t factor) {
  std::vector<at::Tensor> all;
  const auto add = [&](at::IntArrayRef shape, at::ScalarType type) {
    const std::int64_t first = static_cast<std::int64_t>(all.size());
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    all.push_back(((at::arange(count) + first).remainder(1000) * factor).to(type).reshape(shape));
  };
  add({3}, at::kFloat);
  add({0}, at::kFloat);
  add({}, at::kFloat);
  for (int i = 0; i < 40; ++i) add({250, 251}, at::kFloat);
  add({300, 300}, at::kFloat);
  add({5}, at::kLong);
  add({7, 2}, at::kDouble);
  add({6}, at::kDouble);
  add({400000}, at::kInt);
  add({2, 2}, at::kFloat);
  all[5] = all[5].t();
  all.back() = all.back().t();
  return all;
}

int add_up(Group& ranks) {
  std::vector<at::Tensor> tensors = many_kinds(ranks.rank() + 1);
  const std::int64_t size = ranks.size();
  const std::vector<at::Tensor> wanted = many_kinds(size * (size + 1) / 2);
  ranks.sum(tensors);
  std::string wrong;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!at::equal(tensors[i], wanted[i])) wrong += " " + std::to_string(i);
  std::printf("rank %d sums %s\n", ranks.rank(), wrong.empty() ? "right" : ("wrong" + wrong).c_str());
  return wrong.empty() ? 0 : 1;
}

int meet_late(Group& ranks) {
  ranks.meet();
  if (ranks.first()) std::this_thread::sleep_for(std::chrono::seconds(2));
  const std::clock_t before = std::clock();
  ranks.meet();
  std::printf("rank %d worked %.3f\n", ranks.rank(),
              static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
  return 0;
}

int run(const Arguments& given, const char* run_dir, Group& ranks) {
  if (given.contains("sums")) return add_up(ranks);
  if (given.contains("late")) return meet_late(ranks);
  const int rank = ranks.rank();
  auto task = std::make_unique<LogTask>(given, rank == 1 ? value(given, "lack", -1) : -1);
  LogTask* model = task.get();
  Trainer* trainer = nullptr;
  Listener listener;
  listener.on_message = [&](const std::string& line) {
    std::printf("rank %d says %s\n", rank, line.c_str());
  };
  listener.on_step = [&](const StepEvent& e) {
    if (rank == 0 && e.gate == Gate::ok)
      std::printf("step %lld loss %.9g\n", static_cast<long long>(e.step), e.loss);
    if (rank != 1) return;
    if (e.step == value(given, "die", -1)) (void)std::raise(SIGKILL);
    if (e.step == value(given, "leave", -1)) trainer->request_stop(143);
    const at::NoGradGuard no_grad;
    if (e.step == value(given, "drift", -1)) model->parameters()[0].second.detach().add_(1e-6);
  };
  auto adamw = make_adamw(task->parameters(), {}).value();
  auto made = Trainer::create(config_of(given, run_dir, ranks), std::move(task), std::move(adamw), listener);
  const auto told = [&](const Error& error, bool together) {
    if (!error.message.empty()) std::printf("error of rank %d: %s\n", rank, error.text().c_str());
    std::fflush(stdout);
    if (!together) ranks.end_all(exit_code(error.code));
    return error.message.empty() ? 0 : exit_code(error.code);
  };
  if (!made) return told(made.error(), true);
  trainer = made->get();
  const Result<Summary> summary = trainer->run();
  if (!summary) return told(summary.error(), trainer->ended_together());
  std::printf("rank %d rows%s\n", rank, model->computed.c_str());
  std::printf("rank %d weights %016llx\n", rank,
              static_cast<unsigned long long>(hash_of(model->parameters())));
  std::printf("rank %d ended at %lld: %s\n", rank, static_cast<long long>(summary->counters.optimizer_step),
              summary->outcome.c_str());
  if (rank == 0) {
    std::printf("held out %.12g\n", summary->eval_loss);
    for (const std::string& file : summary->incidents) std::printf("incident %s\n", file.c_str());
  }
  return rank == 0 ? static_cast<int>(summary->exit) : 0;
}

}  // namespace
}  // namespace nanquest::trainer

int main(int argc, char** argv) {
  using namespace nanquest::trainer;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Arguments given;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    given[argument.substr(0, equals)] = std::atoll(argument.c_str() + equals + 1);
  }
  auto joined = join(launched());
  if (!joined) {
    std::printf("error: %s\n", joined.error().text().c_str());
    return nanquest::exit_code(joined.error().code);
  }
  at::set_num_threads(1);
  return run(given, argc > 1 ? argv[1] : "run", *joined ? **joined : nobody_else());
}
