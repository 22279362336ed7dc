/// Pace: decides when a window draws. While something happens, and for a few frames after it: menus, tooltips
/// and layouts take more than one frame to settle.
#pragma once

#include <algorithm>

namespace nanquest::viewer {

class Pace {
 public:
  /// True if nothing is left to draw: the loop may sleep until something happens.
  bool may_wait() const { return left_ == 0; }
  /// Call once per turn of the loop. `something`: input is waiting, or there are new data. True if a frame
  /// must be drawn in this turn.
  bool next(bool something) {
    const bool draws = something || left_ > 0;
    left_ = something ? kSettle : std::max(0, left_ - 1);
    return draws;
  }

 private:
  static constexpr int kSettle = 4;
  int left_ = kSettle;
};

/// True while Dear ImGui holds input that no frame has taken yet, or a key or button is held down. It takes a
/// press and its release in two frames, however quickly they came: sleeping before the second would show an
/// outdated picture. A held key repeats, a held button drags.
bool input_waits();

}  // namespace nanquest::viewer
