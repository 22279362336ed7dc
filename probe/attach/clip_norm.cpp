#include "probe/attach/clip_norm.h"

#include <ATen/ATen.h>

#include "probe/attach/losses.h"
#include "probe/step/run_band.h"

namespace nanquest::attach {

bool ClipNorm::found(const at::Tensor& norm) {
  norm_ = norm.detach();
  count_ = norm_.numel();
  if (count_ == 0) norm_.reset();
  if (count_ > 1) norm_ = norm_.abs().amax();  // NaN if one is
  if (!norm_.defined() || !norm_.is_cpu() || holds_finite(norm_)) return false;
  bad_ = true;
  return true;
}

double ClipNorm::figure() const {
  return norm_.defined() && norm_.is_cpu() && one() ? norm_.item().toDouble() : StepFigures::kUnknown;
}

}  // namespace nanquest::attach
