/// absurd_number: a number that a program set and that can't be meant: NaN, infinite, or outside of what its
/// op's formula allows.
#pragma once

#include <optional>
#include <string>

#include "replay/case/case.h"
#include "replay/cause/numbers.h"

namespace nanquest {

struct Reason {
  std::string what;    ///< "the temperature"
  std::string reason;  ///< why no such number can be intended
  double sane;
  bool written = false;  ///< it was put into what the step computed, unchanged
};

/// Why this number among the arguments of op `at` can't be intended; nothing if it can.
std::optional<Reason> why_absurd(const Case& c, std::int32_t at, const Number& n);

}  // namespace nanquest
