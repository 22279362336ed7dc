/// Trail: the places that a user has looked at, to go back and forward.
#pragma once

#include <vector>

#include "viewer/model/selection.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {

class Trail {
 public:
  struct Place {
    Selection selection;
    Panel panel = Panel{};
  };

  /// Call once per frame. A selection other than the last is a new place; places ahead are dropped. The panel
  /// of a place is the one that was in front when it was last left.
  void visit(const Selection& selection, Panel panel);
  /// The place before or after, which becomes the present one; null at the ends.
  const Place* back();
  const Place* forward();
  bool can_go_back() const { return at_ > 0; }
  bool can_go_forward() const { return at_ + 1 < places_.size(); }

 private:
  static constexpr std::size_t kMost = 200;
  std::vector<Place> places_;
  std::size_t at_ = 0;
};

}  // namespace nanquest::viewer
