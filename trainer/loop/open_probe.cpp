#include "trainer/loop/open_probe.h"

#include <cmath>
#include <utility>

namespace nanquest::trainer {

Result<std::unique_ptr<Probe>> open_probe(const LoopConfig& config, Group& ranks, const Task& task,
                                          const Optimizer& optimizer) {
  ProbeOptions options;
  options.run_dir = config.run_dir;
  options.level = config.rehearsal ? Level::off : config.level;
  options.tape = config.rehearsal ? 0 : static_cast<int>(config.tape);
  options.tape_folder = config.tape_folder;
  options.frozen_weights = config.frozen_weights;
  options.resume = config.resume;
  options.min_loss_scale = config.scaler.floor;
  options.config = config.settings;
  options.rank = ranks.rank();
  options.world_size = ranks.size();
  if (!ranks.alone()) options.least = [&ranks](std::int64_t value) { return ranks.least(value); };
  Result<std::unique_ptr<Probe>> opened = Probe::create(std::move(options));
  if (!opened) return opened;
  Probe& probe = **opened;
  for (const auto& [name, p] : task.parameters()) probe.watch_parameter(name, p);
  for (const auto& [name, b] : task.buffers()) probe.watch_buffer(name, b);
  probe.watch_optimizer([&optimizer] { return optimizer.state(); });
  // New names are only taken before the first step.
  const double nan = std::nan("");
  for (const Metric& metric : task.metrics({})) probe.log("eval_" + metric.name, nan);
  for (const auto& [name, value] : optimizer.numbers()) probe.log(name, nan);
  probe.log("tokens_per_second", nan);
  return opened;
}

}  // namespace nanquest::trainer
