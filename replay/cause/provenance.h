/// provenance: how a tensor from outside came by its bad values, as far as the record shows it.
///
/// That the step did not make them is not enough to call them bad data or a bad state: an operation that is
/// not on record may have made them, they may be meant, or nobody may have written them. One fact of the
/// record must say where they come from; otherwise the claim is left open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/case/case.h"
#include "replay/cause/outside_value.h"
#include "replay/verdict/labels.h"

namespace nanquest {

struct Provenance {
  std::string shown;             ///< the fact that says where it comes from; empty if none does
  std::string open;              ///< without such a fact: what else it may be
  std::optional<Label> rival{};  ///< the cause that this would be
  std::string
      known{};  ///< what is known all the same, as a sentence: " No load_state_dict gave it a value …"
  bool by_program = false;  ///< the program wrote it before its first update: no checkpoint and no step did
};

/// Of a value that comes with the batch. `poison`: the samples that are bad in it (bad_samples).
Provenance provenance_of_data(const Case& c, const OutsideValue& value,
                              const std::vector<std::int64_t>& poison);

/// Of a weight, a buffer or a moment.
Provenance provenance_of_state(const Case& c, const OutsideValue& value);

/// Why the program may not have written these numbers, which it wrote during the step if anything did; empty
/// if it did.
std::string doubt_of_written(const Case& c, const OutsideValue& value);

/// An infinity that is meant, in a weight or buffer: it has been there since before the first update, and
/// healthy steps were made by operations that read all of it, as the culprit does (the log of a probability
/// of 0, a mask). What came to it in this step is to blame.
bool is_meant_in_state(const Case& c, const OutsideValue& value);

/// An infinity that is meant (a mask) does no harm in most places. By trying: with some of several bad
/// elements mended (one sample of several, or every other element) the step is finite, so that the rest does
/// no harm.
bool is_meant_elsewhere(const Case& c, const OutsideValue& value, const std::vector<std::int64_t>& poison);

}  // namespace nanquest
