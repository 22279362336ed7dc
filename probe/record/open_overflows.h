/// Overflows on a device that are still unexplained. In a watched step an op on a device made infinities, and
/// the step did not wait for it, so the op's inputs were gone before they could be checked. Steps repeat: the
/// next watched step waits for the device at these places and checks whether it is an overflow of the format
/// and whether later ops hid it, as it does for every op on a CPU (hidden_overflow.h).
#pragma once

#include <cstdint>
#include <vector>

#include "probe/record/step.h"

namespace nanquest::record {

/// Not thread-safe: the recorder locks.
class OpenOverflows {
 public:
  /// `op` made infinities from finite inputs on a device, and its inputs are gone.
  void add(const OpRecord& op);
  /// A watched step begins, which will check the open places.
  void begin_watched_step();
  /// Whether to wait for this op.
  bool asks(const OpRecord& op) const;
  /// Whether the next step should be watched: a place is open that has not been checked often enough.
  bool any() const;

 private:
  struct Place {
    const OpTraits* op;
    const ModuleName* module;
    Phase phase;
    int asked;  ///< number of checks
  };
  const Place* find(const OpRecord& op) const;
  std::vector<Place> places_;
};

}  // namespace nanquest::record
