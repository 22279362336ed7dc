/// numbers: the numbers that an op was given, and what they are in a training.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "replay/case/case.h"

namespace nanquest {

/// One number among an op's arguments.
struct Number {
  std::size_t position;
  std::string name;  ///< of the argument
  double value;
  std::int32_t tensor = kNone;      ///< row of the outside tensor that holds it; kNone for a constant
  std::int32_t written_by = kNone;  ///< the op by which the program wrote it into a tensor of its own
  bool computed =
      false;  ///< `written_by` computed it from numbers that the user chose, and from nothing else
};

/// Numbers that the user chose: constants, tensors without dimensions that no op of the step made and that
/// are neither learned nor gathered over steps, one-element tensors that belong to the optimizer, and numbers
/// that the program made into a tensor in the step (torch.tensor(x), torch.full), or computed from such
/// numbers alone (1 - beta ** t).
std::vector<Number> numbers_of(const Case& c, std::int32_t op);

/// Ops (by plain_name) that write a number: in these, NaN and infinity are markers.
bool writes_marks(const std::string& op);

/// What the number is in words of training, if its use shows it: what multiplies the change of weights in an
/// update is a learning rate, and decay shrinks weights by a factor. Otherwise the argument and its op.
std::string role_of(const Case& c, std::int32_t op, const Number& n);

/// True if nothing of a model went into the inputs of `op`, nor into the memory that it writes: it works on
/// data.
bool works_on_data(const Case& c, std::int32_t op);

/// True if the argument of `op` at `position` is yes or no for each element, and is not computed from
/// numbers: every element is 0 or 1, and it came from outside or from a comparison.
bool is_selection(const Case& c, std::int32_t op, std::size_t position);

}  // namespace nanquest
