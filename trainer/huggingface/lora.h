/// Low-rank adapters (LoRA, arXiv 2106.09685): y = W·x + scale · B·(A·dropout(x)) with W frozen.
#pragma once

#include <cstdint>
#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

struct LoraOptions {
  bool on = false;
  std::int64_t r = 8;        ///< rank: A is [r, in], B is [out, r]
  double alpha = 32;         ///< scale is alpha / r
  double dropout = 0.05;     ///< of what goes into A, while training
  bool rank_scaled = false;  ///< scale is alpha / √r (PEFT: use_rslora)
  /// Modules that are adapted, with commas between: last parts of their names ("q_proj,v_proj"), "all-linear"
  /// for every linear layer but the head, or "" for the projections of attention, as PEFT has them.
  std::string targets;
};

Status check(const LoraOptions& options);

}  // namespace nanquest::trainer
