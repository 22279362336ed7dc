/// AdamW with moments in the format of the weights (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", 2019).
#pragma once

#include <memory>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"
#include "trainer/optim/optimizer.h"

namespace nanquest::trainer {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
};

/// Declares the settings that are AdamW's own, in the group Optimizer.
void declare(SettingList& list, AdamWOptions& options);
/// Names the first setting that makes no sense.
Status check(const AdamWOptions& options);

/// Fused, in place. `weight_decay` pulls on parameters of two dimensions and more; norms and biases, which
/// have one, it would only take away from what they are there for. Its state is "exp_avg.NAME",
/// "exp_avg_sq.NAME" and "step.NAME". `usage` as `check`.
Result<std::unique_ptr<Optimizer>> make_adamw(NamedTensors parameters, const AdamWOptions& options);

}  // namespace nanquest::trainer
