/// absurd_sample: a finite value of the batch that cannot be data: a fill value, a wrong unit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/case/case.h"
#include "replay/counterfactual/change.h"

namespace nanquest {

/// One row of an outside tensor that holds a value far beyond all others.
struct AbsurdSample {
  std::string name;             ///< of the tensor; "" if it has none
  std::int32_t reader = kNone;  ///< the first op that reads it
  std::int64_t row = 0;         ///< along the first dimension, as the op reads it
  std::int64_t row_in_memory =
      -1;                  ///< the same in the memory that the tensor is a part of; -1 if it is all of it
  bool is_sample = false;  ///< rows are the samples of the batch
  std::vector<std::int64_t> place;  ///< of the value, in the tensor as it is read
  double value = 0, usual = 0;      ///< and the 99.9th percentile of |x| of the rest
  Change without;                   ///< the row replaced by another one; the placebo replaces a third row
};

/// Three conditions: the step is finite with the batch of the last healthy step, it is finite without the
/// row, and the value is larger than 100 times the 99.9th percentile of the magnitudes of the rest (at least
/// 50 numbers). Nothing if one of them fails or could not be tested. A few runs of the step.
std::optional<AbsurdSample> absurd_sample(const Case& c);

}  // namespace nanquest
