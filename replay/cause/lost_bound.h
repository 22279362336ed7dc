/// lost_bound: zeros that only the number format makes: of a difference n - x where a bound should keep x
/// from n, and the format rounds the bound to n.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "replay/case/case.h"
#include "replay/cause/cause.h"

namespace nanquest {

/// In fp64 the whole step makes no zero in what `maker` writes. False if that isn't known.
bool has_no_zeros_in_fp64(const Case& c, std::int32_t maker);

/// EPS_UNDERFLOW of the culprit's operand `name`, which is zero in `bad` elements: behind it, over sums,
/// products and powers, is a value that a clamp should have kept below a number, or above, from which it is
/// subtracted; but the format rounds the bound to that number. Nothing where there is none, or fp64 has a
/// zero in the operand too.
std::optional<Finding> finding_of_lost_bound(const Case& c, std::string_view name, std::int64_t bad);

}  // namespace nanquest
