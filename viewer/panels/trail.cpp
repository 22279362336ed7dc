#include "viewer/panels/trail.h"

namespace nanquest::viewer {

void Trail::visit(const Selection& selection, Panel panel) {
  // The format that values are compared with is no place: it belongs to the place where it was last used.
  if (!places_.empty()) places_[at_].selection.what_if = selection.what_if;
  // Nor is how curves are smoothed, and that belongs to all places.
  for (Place& place : places_) place.selection.smoothing = selection.smoothing;
  if (!places_.empty() && places_[at_].selection == selection) {
    places_[at_].panel = panel;
    return;
  }
  if (!places_.empty()) places_.resize(at_ + 1);
  places_.push_back({selection, panel});
  if (places_.size() > kMost) places_.erase(places_.begin());
  at_ = places_.size() - 1;
}

const Trail::Place* Trail::back() {
  return can_go_back() ? &places_[--at_] : nullptr;
}

const Trail::Place* Trail::forward() {
  return can_go_forward() ? &places_[++at_] : nullptr;
}

}  // namespace nanquest::viewer
