/// scale: which values of a step are gradients, and which is the loss scale: found by how the ops use them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/case/case.h"

namespace nanquest {

/// True if tensor row `tensor`, read before op `before`, is a gradient or a plain function of gradients only
/// (cast, scaled, squared): made in backward or stored in memory of a gradient, at most a few ops ago.
bool is_gradient(const Case& c, std::int32_t tensor, std::int32_t before);

/// The number by which the loss is multiplied before backward starts from it, or with which backward is
/// started.
struct LossScale {
  std::int32_t op =
      kNone;  ///< the multiplication, or division; if backward is started with it, its first reader
  std::int32_t tensor = kNone;  ///< tensor row of the scale; kNone if it is a constant of the op
  std::int32_t slot = kNone;    ///< its storage
  double value = 1;
};
/// Nothing if the step shows none. If it divides, is applied before the loss is summed, or is given to
/// backward, it is a scale only if gradients are scaled again after backward.
std::optional<LossScale> loss_scale_of(const Case& c);

/// The step's loss scale: the scaler's as recorded, otherwise the number that the loss is multiplied by; 1 if
/// there is none.
double step_loss_scale(const Case& c);

/// The file and line that called the op, the innermost that is not in PyTorch's own files; "" if it is not
/// recorded.
std::string called_from(const Case& c, std::int32_t op);

}  // namespace nanquest
