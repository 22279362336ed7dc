/// Gradient descent with momentum, as torch.optim.SGD.
#pragma once

#include <memory>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"
#include "trainer/optim/groups.h"
#include "trainer/optim/optimizer.h"

namespace nanquest::trainer {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0.0;  ///< added to the gradient, on matrices
  std::vector<ParameterGroup> groups = {};
};

/// Declares the settings that only SGD has, in the group Optimizer.
void declare(SettingList& list, SgdOptions& options);
/// Names the first invalid setting.
Status check(const SgdOptions& options);

/// Fused, in place. Its state is "momentum_buffer.NAME", none with momentum 0. `usage` as in `check` and
/// `move_rules`.
Result<std::unique_ptr<Optimizer>> make_sgd(NamedTensors parameters, const SgdOptions& options);

}  // namespace nanquest::trainer
