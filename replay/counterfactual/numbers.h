/// numbers: finds and replaces the numbers among an op's arguments.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>

namespace nanquest {

/// The forms in which a number may appear among an op's arguments. Each kind includes those before it.
enum class NumberAs : std::uint8_t {
  real,         ///< written with a point in the program: no whole number, no tensor that a model computed
  literal,      ///< written in the program: a whole number or not
  one_element,  ///< also a tensor of one element, whatever made it
};

/// True if `value` is this number (NaN equals NaN); never for a complex one.
bool is_number(const c10::IValue& value, double number, NumberAs as);

/// `value` with its number replaced by `number`, in the same form: a number, a tensor of one element (fp64 if
/// it held whole numbers), a number wrapped in a tensor. None becomes the number; a value without a number is
/// unchanged.
c10::IValue with_number(const c10::IValue& value, double number);

}  // namespace nanquest
