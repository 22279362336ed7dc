/// LayerRange: which layers a map of all of them shows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nanquest::viewer {

class LayerRange {
 public:
  /// Call once per frame: `layers` there are; all of them are shown if their number changed, and if all steps
  /// and values were asked for since (StepRange::asked()).
  void fit(std::size_t layers, std::uint64_t asked);
  /// Shows [from, to), kept within the layers; at least four, or all if there are fewer.
  void show(double from, double to);
  /// Moves just so far that this layer is shown, if it is another one than at the last call.
  void keep_in_sight(std::ptrdiff_t layer);
  double from() const { return from_; }
  double to() const { return to_; }
  bool is_all() const { return from_ <= 0 && to_ >= layers_; }

 private:
  double layers_ = 0, from_ = 0, to_ = 0;
  std::uint64_t asked_ = 0;
  std::ptrdiff_t seen_ = -1;
};

}  // namespace nanquest::viewer
