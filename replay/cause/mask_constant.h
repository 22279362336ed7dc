/// mask_constant: is a large number among an operand's elements one that the program wrote there to mask
/// them?
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "replay/case/case.h"

namespace nanquest {

/// Smaller ones are not masks: a shift, a scale.
inline constexpr double kSmallestMask = 1e3;

/// At most two different values.
bool few_values(const at::Tensor& x);

/// finfo.min, or a round large number such as -1e9: people write these, training doesn't compute them.
bool is_written_by_hand(double value);

/// Where a mask's constant comes from.
struct MaskSource {
  std::int32_t op = kNone;  ///< the op that wrote it over data; kNone for a mask that is a tensor of its own
};

/// `constant`, which operand `name` of `op` holds, is a mask value: the operand is a mask (a table of
/// constants that no data or weights went into), or a mask was written over data, or added to data (which
/// rounding then removed), and moved or picked by value (a maximum) since then. Nothing otherwise.
std::optional<MaskSource> mask_source(const Case& c, std::int32_t op, std::string_view name, double constant);

/// The op as recorded with its mask, and without.
struct MaskedResult {
  std::string operand;  ///< its name in the schema
  double constant = 0;
  double without = 0;  ///< largest magnitude of the result at its bad elements with 0 in place of the mask
  MaskSource source = {};
};

/// The culprit combines elements of its operands (a sum, a matrix product) or is a power of them, and its bad
/// elements are due to mask constants among these: with 0 in their place alone, the op is inside the format
/// in fp64 and finite as recorded. `out`: its result as recorded; `bad`: the elements that are bad there and
/// finite in fp64.
std::optional<MaskedResult> masked_elements(const Case& c, const at::Tensor& out, const at::Tensor& bad);

/// A constant of the same sign with which the result of the culprit, in fp64, has at most a quarter of the
/// largest number of `out`.
double fitting_constant(const Case& c, const MaskedResult& mask, const at::Tensor& out);

}  // namespace nanquest
