/// rounding: how far two values are apart, and how far rounding alone could have brought them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "replay/trace/compare.h"
#include "replay/trace/lockstep.h"

namespace nanquest::diff {

/// How far two tensors are apart, relative to the size of the first.
struct Apart {
  double whole = 0;   ///< |a - b| / |a|, Euclidean; for integers the share of elements that differ
  double most = 0;    ///< largest |a - b| of an element / largest |a|; for integers 1 if any differs
  bool kind = false;  ///< they differ in shape, or an element is finite on one side only

  bool any() const { return kind || whole > 0 || most > 0; }
  void at_least(const Apart& other);
};

/// Both CPU tensors of one dtype or of two. Undefined tensors and other shapes: `kind`.
Apart apart(const at::Tensor& a, const at::Tensor& b);

/// A value in a step: entry `entry` of what op `op` wrote.
struct WrittenPlace {
  std::int32_t op = kNone, entry = 0;
  friend auto operator<=>(const WrittenPlace&, const WrittenPlace&) = default;
};

/// What a change of the last bit makes of each value of a step.
class Rounding {
 public:
  /// Runs the step `times` times beside itself, in `precision`. In each run every number that the step reads
  /// from outside and every number that an op writes is moved by one unit in its last place, up or down, by
  /// chance. Numbers with a short mantissa (0, 1, 0.5, masks, constants) stay, because they are exact; in
  /// fp64 so do those from outside, which both steps are given alike. `wanted`: values whose limits are asked
  /// too.
  Rounding(const Replayer& replayer, int times, const std::vector<Place>& wanted,
           Precision precision = Precision::as_recorded);

  /// The largest distance in these runs; zero for a place that was not written.
  Apart limit(const WrittenPlace& place) const;
  /// The same for the values that were wanted.
  Apart wanted(std::size_t index) const { return wanted_[index]; }

 private:
  std::map<WrittenPlace, Apart> limits_;
  std::vector<Apart> wanted_;
};

/// True if `found` is more than eight times as far as rounding brings it (`limit`), and than two units in the
/// last place of the coarser dtype of both. A difference in kind is beyond rounding unless rounding makes
/// one.
bool beyond(const Apart& found, const Apart& limit, at::ScalarType a, at::ScalarType b);

/// Moves each element by one unit in its last place, up or down; short mantissas and non-finite elements
/// stay. Never throws; tensors that can't be changed in place stay.
void move_last_bits(const at::Tensor& t, std::uint64_t seed);

}  // namespace nanquest::diff
