/// The clip of a whole gradient norm.
#pragma once

#include <algorithm>

namespace nanquest {

/// What gradients of 2-norm `norm` are multiplied by, so that it is at most `largest`: min(1, largest / (norm
/// + 1e-6)), as torch.nn.utils.clip_grad_norm_ has it.
inline double clip_coefficient(double largest, double norm) {
  return std::min(1.0, largest / (norm + 1e-6));
}

}  // namespace nanquest
