/// Low-rank adapters (LoRA, arXiv 2106.09685): y = W·x + scale · B·(A·dropout(x)) with W frozen.
#pragma once

#include <cstdint>
#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

struct LoraOptions {
  bool on = false;
  std::int64_t r = 8;        ///< rank: A is [r, in], B is [out, r]
  double alpha = 32;         ///< the scale is alpha / r
  double dropout = 0.05;     ///< of A's input, during training
  bool rank_scaled = false;  ///< the scale is alpha / √r (PEFT: use_rslora)
  /// Adapted modules, separated by commas: ends of their names ("q_proj,v_proj"), "all-linear" for every
  /// linear layer except the head, or "" for PEFT's choice for the family.
  std::string targets = {};

  double scale() const;
};

/// Names the first invalid option.
Status check(const LoraOptions& options);

}  // namespace nanquest::trainer
