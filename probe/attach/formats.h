/// Weights and what belongs to them, one format up: what the fp32 fallback of an attached program does to its
/// tensors.
///
///     Widened widened;
///     if (Status s = widened.widen(tensors); !s) …         // nothing was changed
///     if (it_does_not_work) widened.take_back();           // bit for bit as before, if nobody wrote in
///     between
///
/// The tensors stay who they are: only what they hold is replaced, as Module.to does. Gradients go with their
/// weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::attach {

class Widened {
 public:
  /// Makes fp16 and bf16 tensors fp32, all or none; others are left as they are. `unsupported` with what
  /// can_widen says, or what LibTorch said.
  Status widen(const std::vector<at::Tensor>& tensors);
  /// The formats from before `widen`.
  void take_back();
  /// It stays so: the tensors are no longer held.
  void keep() { changed_.clear(); }

 private:
  std::vector<std::pair<at::Tensor, at::ScalarType>> changed_;
};

/// Whether these can be made fp32 now; if not, `unsupported` says why: two that share memory would no longer
/// do so, or too little is free, with the numbers.
Status can_widen(const std::vector<at::Tensor>& tensors);

}  // namespace nanquest::attach
