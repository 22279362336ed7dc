/// The clip of a global gradient norm.
#pragma once

#include <algorithm>

namespace nanquest {

/// The factor for gradients of 2-norm `norm` so that the norm becomes at most `largest`: min(1, largest /
/// (norm + 1e-6)), as in torch.nn.utils.clip_grad_norm_.
inline double clip_coefficient(double largest, double norm) {
  return std::min(1.0, largest / (norm + 1e-6));
}

}  // namespace nanquest
