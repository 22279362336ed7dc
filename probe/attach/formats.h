/// Weights and what belongs to them in a wider format: what the fp32 fallback of an attached program does to
/// its tensors.
///
///     Widened widened;
///     if (Status s = widened.widen(tensors); !s) …         // nothing was changed
///     if (it_does_not_work) widened.take_back();           // as before, bit for bit, if nothing was written
///
/// The tensors keep their identity: only their content is replaced, as in Module.to. Gradients are converted
/// with their weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::attach {

class Widened {
 public:
  /// Makes fp16 and bf16 tensors fp32, all or none; others are left as they are. On failure `unsupported`,
  /// with the message of can_widen or of LibTorch.
  Status widen(const std::vector<at::Tensor>& tensors);
  /// Restores the formats from before `widen`.
  void take_back();
  /// Keeps the change: the tensors are no longer held.
  void keep() { changed_.clear(); }

 private:
  std::vector<std::pair<at::Tensor, at::ScalarType>> changed_;
};

/// Whether these can be made fp32 now. If not, `unsupported` says why: two of them share memory and would not
/// afterwards, or there is too little free memory, with the numbers.
Status can_widen(const std::vector<at::Tensor>& tensors);

}  // namespace nanquest::attach
