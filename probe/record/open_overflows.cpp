#include "probe/record/open_overflows.h"

#include <algorithm>

namespace nanquest::record {
namespace {

constexpr std::size_t kMostPlaces = 32;
/// An overflow depends on the batch. One that did not come back in this many steps is not waited for any
/// longer.
constexpr int kMostTimes = 3;

}  // namespace

const OpenOverflows::Place* OpenOverflows::find(const OpRecord& op) const {
  const auto found = std::find_if(places_.begin(), places_.end(), [&](const Place& place) {
    return place.op == op.traits && place.module == op.module && place.phase == op.phase;
  });
  return found == places_.end() ? nullptr : &*found;
}

void OpenOverflows::add(const OpRecord& op) {
  if (places_.size() < kMostPlaces && !find(op)) places_.push_back({op.traits, op.module, op.phase, 0});
}

void OpenOverflows::begin_watched_step() {
  for (Place& place : places_) ++place.asked;
}

bool OpenOverflows::asks(const OpRecord& op) const {
  const Place* place = find(op);
  return place && place->asked <= kMostTimes;
}

bool OpenOverflows::any() const {
  return std::any_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.asked < kMostTimes; });
}

}  // namespace nanquest::record
