/// call_again: one call of an op, made again outside the replayer: unchanged, in another format, or with its
/// inputs moved to see how the op behaves around them.
///
///     const CallAgain call(op, arguments);
///     if (const auto up = call.one_up()) results = call.in(*up);
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <vector>

#include "probe/snapshot/model.h"
#include "probe/tensor/one_up.h"

namespace nanquest {

class CallAgain {
 public:
  /// What replaces a tensor among the arguments; undefined: it stays.
  using Instead = std::function<at::Tensor(const at::Tensor&)>;

  /// `arguments`: one per schema argument; for an op on lists, those of one of its calls. Tensors are held,
  /// not copied: make the call before they are overwritten, or pass copies. Never throws.
  CallAgain(const OpRow& op, std::vector<c10::IValue> arguments);

  /// The format one precision above that of its inputs; nothing if there is none, or no call.
  std::optional<at::ScalarType> one_up() const;

  /// The same call; with every floating-point tensor and dtype argument raised to `type`. Nothing if it can't
  /// be made, or mustn't be: its results don't follow from its inputs alone (it draws random numbers, returns
  /// uninitialised memory, waits for other processes), or its kernel is unknown. Writes into copies only and
  /// returns copies. Never throws.
  std::optional<OpResults> as_it_was() const;
  std::optional<OpResults> in(at::ScalarType type, const Instead& instead = {}) const;

  /// This call with its arguments raised for good: `instead` then sees that format.
  CallAgain raised_to(at::ScalarType type) const;

 private:
  std::optional<OpResults> run(std::vector<c10::IValue> arguments) const;

  std::optional<c10::OperatorHandle> handle_;  ///< none: nothing may be called
  std::vector<bool> written_;
  std::vector<c10::IValue> arguments_;
};

/// The tensors that identify a call: its results, or else what it writes.
std::vector<at::Tensor> told_by(std::optional<OpResults> results);

/// True for a tensor that may be moved as an input of a call in fp64: not a number among the arguments.
bool can_be_moved(const at::Tensor& t);

/// A copy that is not shared; lists of tensors are copied element by element.
c10::IValue copy_of(const c10::IValue& value);

}  // namespace nanquest
