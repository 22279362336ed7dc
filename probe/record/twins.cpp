#include "probe/record/twins.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "probe/observe/observer.h"

namespace nanquest::record {

void Twins::keep(Step& step, std::int64_t number, const TwinNames& names) {
  if (twins_[last_].round() != step.number) last_ = 1 - last_;
  const ObserverPause pause;
  const at::NoGradGuard no_grad;
  try {
    (void)twins_[last_].keep(step, number, names);
  } catch (const std::exception&) {  // no memory: there is no twin, and nothing else is affected
    twins_[last_].forget();
  }
}

void Twins::not_healthy(std::int64_t number) {
  for (TwinBatch& twin : twins_)
    if (twin.round() == number) twin.forget();
}

std::vector<const TwinBatch*> Twins::before(std::int64_t number) const {
  std::vector<const TwinBatch*> found;
  for (const TwinBatch* twin : {&twins_[last_], &twins_[1 - last_]})
    if (twin->round() >= 0 && twin->round() < number) found.push_back(twin);
  if (found.size() == 2 && found[0]->round() < found[1]->round()) std::swap(found[0], found[1]);
  return found;
}

void Twins::take_records(Step& step) {
  for (TwinBatch& twin : twins_) twin.take_records(step);
}

std::size_t Twins::memory() const {
  return twins_[0].memory() + twins_[1].memory();
}

}  // namespace nanquest::record
