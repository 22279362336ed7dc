/// origin: how an operand was made, by the ops that made it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "replay/case/case.h"

namespace nanquest {

/// The op that made the argument `name` of `op` (in the call in focus); kNone if it came from outside.
std::int32_t maker_of(const Case& c, std::int32_t op, std::string_view name);
/// The same, looking through ops that only move, copy, cast or select elements.
std::int32_t computed_by(const Case& c, std::int32_t op, std::string_view name);
/// True if it is what torch.tensor() made of numbers of the program (lift_fresh is called on nothing else),
/// moved or not.
bool is_number_of_program(const Case& c, std::int32_t op, std::string_view name);
/// True if no op made it (apart from moving) and it is a parameter or belongs to the optimizer.
bool is_trained(const Case& c, std::int32_t op, std::string_view name);
/// " It was made by aten::sum in loss (op 12)."; "" if no op made it. `what` begins the sentence.
std::string maker_text(const Case& c, std::string_view what, std::int32_t maker);

/// The argument at `name` as one number: a constant, or a tensor of one element. Nothing otherwise.
std::optional<double> number_of(const Case& c, std::int32_t op, std::string_view name);
/// The same by its position in the schema.
std::optional<double> number_at(const Case& c, std::int32_t op, std::size_t position);
/// True if the argument is a number of the program: a scalar, or one as a tensor (fp64, no dimensions).
bool is_constant(const Case& c, std::int32_t op, std::string_view name);
/// True if that number was written as a floating-point number, not as a whole one.
bool is_real_number(const Case& c, std::int32_t op, std::string_view name);

/// True if every element of an fp64 tensor is 0 or 1.
bool is_zero_or_one(const at::Tensor& wide);

}  // namespace nanquest
