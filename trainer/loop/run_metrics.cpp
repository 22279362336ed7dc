#include "trainer/loop/run_metrics.h"

#include <chrono>
#include <utility>
#include <vector>

namespace nanquest::trainer {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RunMetrics::RunMetrics(const LoopConfig& config, const Task& task, const Optimizer& optimizer,
                       const GradScaler& scaler, const Counters& counters,
                       std::function<void(const std::string&)> say)
    : config_(config),
      task_(task),
      optimizer_(optimizer),
      scaler_(scaler),
      counters_(counters),
      files_(std::move(say)) {}

Status RunMetrics::open() {
  if (config_.metrics_every == 0) return {};
  std::vector<std::string> columns;
  for (const auto& [name, value] : numbers_of({})) columns.push_back(name);
  return files_.open(config_.run_dir, config_.metrics_csv, counters_.optimizer_step, columns);
}

Numbers RunMetrics::numbers_of(const StepEvent& event) const {
  const Counters& c = counters_;
  const auto known = [](double value) { return value > 0 ? value : kUnknown; };
  const double samples = static_cast<double>(task_.train_samples());
  Numbers numbers = {{"time", seconds_since_1970()},
                     {"epoch", static_cast<double>(c.data_position) / samples},
                     {"loss", event.loss},
                     {"lr", event.lr},
                     {"grad_norm", event.grad_norm},
                     {"loss_scale", scaler_.enabled() ? event.scale : kUnknown},
                     {"tokens", static_cast<double>(c.tokens)},
                     {"tokens_per_second", known(event.tokens_per_second)},
                     {"skipped", static_cast<double>(c.skipped)},
                     {"incidents", static_cast<double>(c.incidents)},
                     {"rollbacks", static_cast<double>(c.rollbacks)}};
  for (const auto& number : optimizer_.numbers()) numbers.push_back(number);
  for (const Metric& metric : event.held_out.empty() ? task_.metrics({}) : event.held_out)
    numbers.emplace_back("eval_" + metric.name, metric.value);
  return numbers;
}

void RunMetrics::write(const StepEvent& event) {
  if (files_.empty()) return;
  const bool last = event.step + 1 == config_.steps;
  if (event.step % config_.metrics_every != 0 && event.held_out.empty() && !last) return;
  files_.write(event.step, numbers_of(event));
}

void RunMetrics::rewrite(const StepEvent& event) {
  files_.cut(event.step);
  write(event);
}

void RunMetrics::cut() {
  files_.cut(counters_.optimizer_step);
}

}  // namespace nanquest::trainer
