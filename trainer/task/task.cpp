#include "trainer/task/task.h"

#include <ATen/ATen.h>

#include <limits>

namespace nanquest::trainer {

Batch Task::eval_batch(std::int64_t /*first*/, std::int64_t /*size*/) const {
  return {};
}

Tally Task::tally(const Batch& batch, const NamedTensors& on_device) {
  return {{"loss", loss_sum(on_device, false).item<double>()},
          {"count", static_cast<double>(loss_count(batch))}};
}

std::vector<Metric> Task::metrics(const Tally& tally) const {
  return {{"loss", tallied(tally, "loss") / tallied(tally, "count")}};
}

double tallied(const Tally& tally, const std::string& name) {
  const auto found = tally.find(name);
  return found != tally.end() ? found->second : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace nanquest::trainer
