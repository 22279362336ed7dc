#include "trainer/task/task.h"

#include <ATen/ATen.h>

#include <limits>

namespace nanquest::trainer {

Batch Task::eval_batch(std::int64_t /*first*/, std::int64_t /*size*/) const {
  return {};
}

std::vector<Fault> Task::faults(const Batch& batch) const {
  return finite_faults(batch);
}

Tally Task::tally(const Batch& batch, const NamedTensors& on_device) {
  return {{"loss", loss_sum(on_device, false).item<double>()},
          {"count", static_cast<double>(loss_count(batch))}};
}

std::vector<Metric> Task::metrics(const Tally& tally) const {
  return {{"loss", tallied(tally, "loss") / tallied(tally, "count")}};
}

std::vector<Fault> finite_faults(const Batch& batch) {
  std::vector<Fault> faults;
  for (const auto& [name, t] : batch.tensors) {
    if (!t.is_floating_point() || at::isfinite(t).all().item<bool>()) continue;
    for (std::int64_t row = 0; row < t.size(0); ++row)
      if (!at::isfinite(t[row]).all().item<bool>())
        faults.push_back({row, name + " holds a number that is not finite"});
  }
  return faults;
}

double tallied(const Tally& tally, const std::string& name) {
  const auto found = tally.find(name);
  return found != tally.end() ? found->second : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace nanquest::trainer
