/// RunMetrics: a step's line in the run's metrics files: which steps have one, and what stands in it.
#pragma once

#include <functional>
#include <string>

#include "trainer/loop/config.h"
#include "trainer/metrics/metrics_log.h"
#include "trainer/optim/optimizer.h"
#include "trainer/precision/grad_scaler.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

class RunMetrics {
 public:
  /// All of them must outlive it. `counters` are read when a line is written. `say` tells a person.
  RunMetrics(const LoopConfig& config, const Task& task, const Optimizer& optimizer, const GradScaler& scaler,
             const Counters& counters, std::function<void(const std::string&)> say);

  /// Opens the files of the run directory, to go on with the present step; none if `metrics_every` is 0.
  /// Until then nothing is written.
  Status open();
  /// Writes the line of `event`, a step that was applied, if `metrics_every` asks for it; a step that was
  /// evaluated and the last one have theirs always.
  void write(const StepEvent& event);
  /// Writes the line of the last step again, with `event`: its weights were evaluated now.
  void rewrite(const StepEvent& event);
  /// Cuts off the lines from the present step on: it will be taken again.
  void cut();

 private:
  /// All names, also of what is not known.
  Numbers numbers_of(const StepEvent& event) const;

  const LoopConfig& config_;
  const Task& task_;
  const Optimizer& optimizer_;
  const GradScaler& scaler_;
  const Counters& counters_;
  MetricsFiles files_;
};

}  // namespace nanquest::trainer
