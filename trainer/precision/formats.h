/// Which formats are really used: determined by running a few tiny ops, not from the settings.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// One sentence of the report: "matmul outputs: fp16 (autocast casts both inputs)".
struct FormatFact {
  std::string what;    ///< "weights", "matmul", "layer norm", "softmax", "loss", "weight gradients", …
  std::string format;  ///< "fp32", "fp16", "bf16", "tf32"
  std::string why;
};

/// Runs a linear layer, a norm, a softmax, a sum and the loss under autocast to `amp` on `device`, forward
/// and backward, and reports the dtypes of the results, and those of weights and moments. Draws no random
/// numbers and changes no state.
std::vector<FormatFact> formats_in_use(const NamedTensors& parameters, const NamedTensors& optimizer_state,
                                       at::Device device, at::ScalarType amp);

}  // namespace nanquest::trainer
