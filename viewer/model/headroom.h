/// Headroom: how many bits the values of every place of an attached program left to the end of their format,
/// at the steps that were looked at whole (probe/snapshot/ranges.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probe/snapshot/ranges.h"
#include "viewer/model/history.h"

namespace nanquest::viewer {

/// A place where it came nearest to the end of its format.
struct HeadroomPlace {
  std::string name;  ///< "aten::bmm in blocks.3.attention (forward, float16)"
  double bits = 0, step = 0, amax = 0;
  double zero = 0, subnormal = 0;  ///< shares of the elements there, 0 … 1; NaN if they are not on record
};

class Headroom {
 public:
  Headroom() = default;
  explicit Headroom(const std::vector<PlaceRanges>& ranges);

  bool empty() const { return places_.empty(); }
  /// Every place that held a number other than 0, the one nearest to the end of its format first.
  const std::vector<HeadroomPlace>& places() const { return places_; }
  /// The steps that were looked at, with the least headroom of all places and that of each, in bits.
  const History& history() const { return history_; }
  /// Headroom of a place by step, the least of all for ""; null if there is no such place.
  const Pyramid* bits(const std::string& place) const;
  /// The place that had the least headroom in a row of the history; "" if none had any.
  std::string nearest(std::size_t row) const;

 private:
  std::vector<HeadroomPlace> places_;
  History history_;
  std::vector<std::string> nearest_;
};

/// The module of a place: "blocks.3.attention"; "" if it names none.
std::string module_of_place(const std::string& place);

}  // namespace nanquest::viewer
