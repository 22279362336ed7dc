/// AdamW with moments in the format of the weights (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", 2019).
#pragma once

#include <memory>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"
#include "trainer/optim/groups.h"
#include "trainer/optim/optimizer.h"

namespace nanquest::trainer {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.0;                ///< for weights without a group of their own: see `move_rules`
  std::vector<ParameterGroup> groups = {};  ///< weights with other settings
};

/// Declares the settings that are AdamW's own, in the group Optimizer.
void declare(SettingList& list, AdamWOptions& options);
/// Names the first invalid setting.
Status check(const AdamWOptions& options);

/// Fused, in place. Its state is "exp_avg.NAME", "exp_avg_sq.NAME" and "step.NAME". `usage` as in `check` and
/// `move_rules`.
Result<std::unique_ptr<Optimizer>> make_adamw(NamedTensors parameters, const AdamWOptions& options);

}  // namespace nanquest::trainer
