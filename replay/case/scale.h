/// scale: what of a step is a gradient, and what is the loss scale: found by what the ops do with them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/case/case.h"

namespace nanquest {

/// True if tensor row `tensor`, read before op `before`, is a gradient or a plain function of gradients alone
/// (cast, scaled, squared): made in backward or lying in memory of a gradient, at most a few ops ago.
bool is_gradient(const Case& c, std::int32_t tensor, std::int32_t before);

/// The number that the loss is multiplied by before backward starts from it, or that backward is started
/// with.
struct LossScale {
  std::int32_t op =
      kNone;  ///< the multiplication, or division; of what backward is started with its first reader
  std::int32_t tensor = kNone;  ///< tensor row of the scale; kNone if it is a constant of the op
  std::int32_t slot = kNone;    ///< its storage
  double value = 1;
};
/// Nothing if the step shows none. Where it divides, comes before the loss is summed up, or is given to
/// backward, it is a scale only if gradients are scaled again after backward.
std::optional<LossScale> loss_scale_of(const Case& c);

/// The step's loss scale: the scaler's as recorded, else the number that the loss is multiplied by; 1 if
/// there is none.
double step_loss_scale(const Case& c);

/// The file and line that called the op, the innermost that is not in PyTorch's own files; "" if it isn't on record.
std::string called_from(const Case& c, std::int32_t op);

}  // namespace nanquest
