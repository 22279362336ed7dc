/// moved_call: an op's recorded call, made again in fp64 with its inputs moved, to see what it is like around
/// them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

class MovedCall {
 public:
  /// `arguments`: one per schema argument, as the op itself wants them; copied. May throw c10::Error, where
  /// one of them has no counterpart in fp64.
  MovedCall(const OpRow& op, const std::vector<c10::IValue>& arguments);

  /// What the op gives, or else what it writes, with what `instead` says in the place of a floating-point
  /// tensor (undefined: as it is). Empty where it can't be run so, or mustn't: it draws, hands out memory
  /// that nobody wrote, or waits for other processes.
  std::vector<at::Tensor> run(const std::function<at::Tensor(const at::Tensor&)>& instead = {}) const;

 private:
  std::optional<c10::OperatorHandle> handle_;  ///< none: nothing may be called
  std::vector<bool> written_;
  std::vector<c10::IValue> base_;
};

/// True for a tensor that an input of such a call may be moved as: not a number among the arguments.
bool can_be_moved(const at::Tensor& t);

}  // namespace nanquest
