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
  /// Another number of rows, after some were folded or unfolded: what is shown stays where it is.
  void resize(std::size_t layers);
  /// Shows [from, to), kept within the layers; at least four, or all if there are fewer.
  void show(double from, double to);
  /// Moves just so far that this row is shown, if it is of another layer than at the last call (-1: of none).
  void keep_in_sight(std::ptrdiff_t row, std::ptrdiff_t layer);
  /// The same where each layer has a row of its own.
  void keep_in_sight(std::ptrdiff_t layer) { keep_in_sight(layer, layer); }
  double from() const { return from_; }
  double to() const { return to_; }
  bool is_all() const { return from_ <= 0 && to_ >= layers_; }

 private:
  double layers_ = 0, from_ = 0, to_ = 0;
  std::uint64_t asked_ = 0;
  std::ptrdiff_t seen_ = -1;
};

}  // namespace nanquest::viewer
