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
  double dropout = 0.05;     ///< of what goes into A, while it trains
  bool rank_scaled = false;  ///< the scale is alpha / √r (PEFT: use_rslora)
  /// Modules that are adapted, with commas between: ends of their names ("q_proj,v_proj"), "all-linear" for
  /// every linear layer but the head, or "" for those that PEFT takes for the family.
  std::string targets = {};

  double scale() const;
};

/// Names the first option that makes no sense.
Status check(const LoraOptions& options);

}  // namespace nanquest::trainer
