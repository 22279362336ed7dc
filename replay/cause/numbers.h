/// numbers: what an op was given as numbers, and what they are in a training.
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
  std::int32_t tensor = kNone;  ///< row of the outside tensor that holds it; kNone for a constant
  std::int32_t written_by =
      kNone;  ///< the op that stands for the program's writing it into a tensor of its own
};

/// The numbers that somebody chose: constants, one-element tensors that no op of the step made and that are
/// neither learned nor gathered over steps nor data, and numbers that the program made a tensor of in the
/// step (torch.tensor(x), torch.full).
std::vector<Number> numbers_of(const Case& c, std::int32_t op);

/// Ops (by plain_name) that write a number down: NaN and infinity are marks there.
bool writes_marks(const std::string& op);

/// What the number is in words of training, where what it does tells: what weights are changed by in an
/// update is times the learning rate, and decay shrinks them by a factor. Else the argument and its op.
std::string role_of(const Case& c, std::int32_t op, const Number& n);

/// Nothing of a model went into what `op` reads, nor into the memory that it writes to: it works on data.
bool works_on_data(const Case& c, std::int32_t op);

/// What `op` reads at `position` says yes or no for each element, and is not computed from numbers: every
/// element is 0 or 1, and it came in so or was made by comparing.
bool is_selection(const Case& c, std::int32_t op, std::size_t position);

}  // namespace nanquest
