#include "probe/attach/watched_steps.h"

#include <algorithm>

namespace nanquest::attach {

bool WatchedSteps::watches(std::int64_t step, std::int64_t last_incident) const {
  if (options_.probe.level == Level::watch || audits(step)) return true;
  if (step < options_.watch_first || step - last_incident <= options_.watch_after) return true;
  return spaces_by_cost() ? spacing_.due(step) : options_.watch_every > 0 && step % options_.watch_every == 0;
}

bool WatchedSteps::spaces_by_cost() const {
  return options_.probe.level == Level::trace && options_.watch_every < 0 && options_.watch_percent > 0;
}

void WatchedSteps::record_begins(std::int64_t step, bool watched, const std::vector<at::Device>& devices) {
  if (watched && options_.probe.level == Level::trace) own_.drops();
  if (!spaces_by_cost()) return;
  clock_.rests();
  take_times();
  if (options_.probe.world_size == 1 && WatchSpacing::decides(step))
    from(step, WatchSpacing::next(step), spacing_.wanted());
  if (!watched && !WatchSpacing::measures(step)) return;
  const auto device = std::find_if(devices.begin(), devices.end(), [](at::Device d) { return !d.is_cpu(); });
  clock_.begins(device == devices.end() ? at::Device(at::kCPU) : *device, watched);
}

std::optional<WatchedSteps::Costs> WatchedSteps::update_made(std::int64_t step, bool reported) {
  reported ? clock_.drops() : clock_.ends();
  if (reported) own_.drops();
  if (!own_.measuring()) return std::nullopt;
  own_.ends();
  return Costs{own_.share(), spacing_.share(step)};
}

void WatchedSteps::take_times() {
  for (const StepClock::Took& each : clock_.taken()) spacing_.took(each.seconds, each.watched);
}

int WatchedSteps::wanted() {
  if (!spaces_by_cost() || options_.probe.world_size == 1) return 0;
  take_times();
  return spacing_.wanted();
}

void WatchedSteps::from(std::int64_t now, std::int64_t first, std::int64_t every) {
  spacing_.from(now, first, static_cast<int>(std::clamp<std::int64_t>(every, 1, WatchSpacing::kMost)));
}

}  // namespace nanquest::attach
