// The run's numbers in files that other programs read.
#include <chrono>
#include <filesystem>

#include "trainer/loop/trainer.h"

namespace nanquest::trainer {
namespace fs = std::filesystem;
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Status Trainer::open_metrics() {
  if (config_.metrics_every == 0 || !ranks_->first()) return {};
  std::vector<std::string> columns;
  for (const auto& [name, value] : numbers_of({})) columns.push_back(name);
  for (const auto& [name, form] :
       {std::pair{kMetricsJsonl, MetricsLog::Form::jsonl}, std::pair{kMetricsCsv, MetricsLog::Form::csv}}) {
    const fs::path path = fs::path(config_.run_dir) / name;
    if (form == MetricsLog::Form::csv && !config_.metrics_csv) continue;
    Result<MetricsLog> log = MetricsLog::open(path.string(), form, counters_.optimizer_step, columns);
    if (!log) return log.error();
    if (log->cut_lines() > 0)
      say(path.string() + ": " + std::to_string(log->cut_lines()) +
          " lines cut off: the run goes on from step " + std::to_string(counters_.optimizer_step));
    metrics_.push_back(std::move(*log));
  }
  return {};
}

Numbers Trainer::numbers_of(const StepEvent& event) const {
  const Counters& c = counters_;
  const auto known = [](double value) { return value > 0 ? value : kUnknown; };
  const double samples = static_cast<double>(task_->train_samples());
  Numbers numbers = {{"time", seconds_since_1970()},
                     {"epoch", static_cast<double>(c.data_position) / samples},
                     {"loss", event.loss},
                     {"lr", event.lr},
                     {"grad_norm", event.grad_norm},
                     {"loss_scale", ladder_.scaler().enabled() ? event.scale : kUnknown},
                     {"tokens", static_cast<double>(c.tokens)},
                     {"tokens_per_second", known(event.tokens_per_second)},
                     {"skipped", static_cast<double>(c.skipped)},
                     {"incidents", static_cast<double>(c.incidents)},
                     {"rollbacks", static_cast<double>(c.rollbacks)}};
  for (const auto& number : optimizer_->numbers()) numbers.push_back(number);
  for (const Metric& metric : event.held_out.empty() ? task_->metrics({}) : event.held_out)
    numbers.emplace_back("eval_" + metric.name, metric.value);
  return numbers;
}

void Trainer::write_metrics(const StepEvent& event) {
  if (metrics_.empty()) return;
  const bool last = event.step + 1 == config_.steps;
  if (event.step % config_.metrics_every != 0 && event.held_out.empty() && !last) return;
  const Numbers numbers = numbers_of(event);
  each_metrics_file([&](MetricsLog& log) { return log.write(event.step, numbers); });
}

void Trainer::rewrite_last_metrics() {
  if (last_event_.steps == 0 || last_event_.step + 1 != counters_.optimizer_step) return;
  each_metrics_file([&](MetricsLog& log) { return log.cut(last_event_.step); });
  write_metrics(last_event_);
}

void Trainer::each_metrics_file(const std::function<Status(MetricsLog&)>& work) {
  // A file that can't be written is told of once; it's no reason to end a run.
  std::erase_if(metrics_, [&](MetricsLog& log) {
    const Status s = work(log);
    if (!s) say(s.error().text() + "; no more metrics are written there");
    return !s.ok();
  });
}

}  // namespace nanquest::trainer
