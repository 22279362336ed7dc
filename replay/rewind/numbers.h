/// numbers: settings of an optimizer that an op of its update takes as a number of its own.
///
/// `_fused_adamw_` has arguments beta1, beta2, eps and weight_decay: their meaning is in the schema. An
/// optimizer that is written in smaller ops has them too, as numbers among others (1 - beta1, a bias
/// correction): which is which could only be guessed, so these are not used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/snapshot/tape.h"

namespace nanquest {

/// A setting that is changed in every update.
struct NumberChange {
  std::string name;  ///< of the argument: "beta2"
  double value = 0;  ///< its new value; with `factor` the factor
  bool factor = false;

  double of(double recorded) const { return factor ? recorded * value : value; }
};

/// Argument `position` of `op` is that number.
struct NumberPlace {
  std::int32_t op = kNone;
  std::size_t position = 0;
};

/// Where updates of `steps`, ops of `trace`, take a number called `name`; nothing if none does.
std::vector<NumberPlace> places_of(const std::vector<TapeStep>& steps, const SnapshotDoc& trace,
                                   const std::string& name);

}  // namespace nanquest
