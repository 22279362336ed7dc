/// AdamW with fp32 moments on fp32 weights (Loshchilov and Hutter, "Decoupled weight decay regularization",
/// 2019).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/model/model.h"

namespace nanquest::trainer {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;
};

/// Owns the moments; shares the parameters with the model. Parameters without a gradient are left alone.
class AdamW {
 public:
  AdamW(NamedTensors parameters, const AdamWOptions& options);

  /// One update with the gradients as they are in `.grad()`: fused, in place.
  void step(double lr);
  /// Multiplies every gradient in place; the caller already knows their norm, so clipping costs one pass.
  void scale_gradients(double factor);
  /// Drops the gradients.
  void clear_gradients();
  /// Casts weights and moments to fp32 in place. `Tensor::to` on the weights alone would leave low-precision
  /// moments behind and the next step would silently mix formats.
  void cast_to_fp32();

  /// "exp_avg.NAME", "exp_avg_sq.NAME" and "step.NAME": handles to what `step` changes.
  NamedTensors state() const;
  const NamedTensors& parameters() const { return parameters_; }
  /// Names of parameters that have no gradient now.
  std::vector<std::string> without_gradient() const;

 private:
  NamedTensors parameters_;
  AdamWOptions options_;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_, steps_;
};

}  // namespace nanquest::trainer
