/// A comparison of two recorded steps in the window: the answer, what differs and why, and every operation of
/// both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/panels/view.h"

namespace nanquest::viewer {

class DiffView {
 public:
  /// Draws the comparison of the session, which must have one, into the current window. The list of
  /// operations begins where the first is beyond rounding.
  void draw(UiState& state);
  /// Rows of StepDiff::operations that are listed.
  const std::vector<std::size_t>& rows() const { return rows_; }

 private:
  enum class Shown : std::uint8_t { all, beyond, alone };
  void refresh(const StepDiff& diff, std::uint64_t content);
  void draw_choice(const StepDiff& diff);
  void draw_operations(const StepDiff& diff);

  Shown shown_ = Shown::all, rows_shown_ = Shown::all;
  std::uint64_t content_ = 0;
  std::vector<std::size_t> rows_;
  bool scrolls_ = true;  ///< to the first operation beyond rounding
};

}  // namespace nanquest::viewer
