// Which steps of level trace are watched, and what the probe costs.
#include <algorithm>

#include "probe/attach/session.h"

namespace nanquest::attach {

bool AttachSession::watching() const {
  if (options_.probe.level == Level::watch || audited()) return true;
  if (step() < options_.watch_first || step() - writer_.last_step() <= options_.watch_after) return true;
  if (spaces_by_cost() ? spacing_.due(step())
                       : options_.watch_every > 0 && step() % options_.watch_every == 0)
    return true;
  return rounds_ && rounds_->recorder().asks_for_watching();
}

bool AttachSession::is_on_device() {
  const std::vector<at::Device>& devices = tensors_.devices();
  return std::any_of(devices.begin(), devices.end(), [](at::Device d) { return !d.is_cpu(); });
}

bool AttachSession::spaces_by_cost() const {
  return options_.probe.level == Level::trace && options_.watch_every < 0 && options_.watch_percent > 0;
}

void AttachSession::time_step() {
  if (!spaces_by_cost()) return;
  clock_.rests();
  take_times();
  if (options_.probe.world_size == 1 && WatchSpacing::decides(step()))
    watch_from(WatchSpacing::next(step()), spacing_.wanted());
  if (!trace_.watched && !WatchSpacing::measures(step())) return;
  const std::vector<at::Device>& devices = tensors_.devices();
  const auto device = std::find_if(devices.begin(), devices.end(), [](at::Device d) { return !d.is_cpu(); });
  clock_.begins(device == devices.end() ? at::Device(at::kCPU) : *device, trace_.watched);
}

void AttachSession::step_was_timed() {
  // Writing an incident's file takes long, and is no cost of watching.
  machine_.reported() ? clock_.drops() : clock_.ends();
  if (machine_.reported()) own_.drops();
  if (!own_.measuring()) return;
  own_.ends();
  history_.costs(own_.share(), spacing_.share(step()));
}

void AttachSession::take_times() {
  for (const StepClock::Took& each : clock_.taken()) spacing_.took(each.seconds, each.watched);
}

int AttachSession::watch_wanted() {
  if (!spaces_by_cost() || options_.probe.world_size == 1) return 0;
  int wanted = 0;
  safely("how often steps are watched", [&] {
    take_times();
    wanted = spacing_.wanted();
  });
  return wanted;
}

void AttachSession::watch_from(std::int64_t step, std::int64_t every) {
  spacing_.from(this->step(), step,
                static_cast<int>(std::clamp<std::int64_t>(every, 1, WatchSpacing::kMost)));
}

}  // namespace nanquest::attach
