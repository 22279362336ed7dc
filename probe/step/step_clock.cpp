#include "probe/step/step_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <utility>

namespace nanquest {
namespace {

constexpr std::size_t kMostOver = 64;  // a device that is further behind has stopped

}  // namespace

StepClock::Mark StepClock::mark(c10::Device device) {
  Mark now{std::chrono::steady_clock::now(), std::nullopt};
  if (device.is_cpu() || !has_events_) return now;
  try {
    c10::Event event(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    event.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
    now.device.emplace(std::move(event));
  } catch (const c10::Error&) {
    has_events_ = false;
  }
  return now;
}

void StepClock::rests() {
  if (running_ && running_->end && over_.size() < kMostOver) over_.push_back(std::move(*running_));
  running_.reset();
}

void StepClock::begins(c10::Device device, bool watched) {
  rests();
  running_.emplace(Step{device, watched, mark(device), std::nullopt});
}

void StepClock::ends() {
  if (running_) running_->end.emplace(mark(running_->device));
}

std::vector<StepClock::Took> StepClock::taken() {
  std::vector<Took> found;
  for (; !over_.empty(); over_.pop_front()) {
    const Step& step = over_.front();
    double seconds = std::chrono::duration<double>(step.end->host - step.begin.host).count();
    if (step.begin.device && step.end->device) try {
        if (!step.end->device->query()) break;
        seconds = 1e-3 * step.begin.device->elapsedTime(*step.end->device);
      } catch (const c10::Error&) {
        has_events_ = false;
      }
    found.push_back({seconds, step.watched});
  }
  return found;
}

}  // namespace nanquest
