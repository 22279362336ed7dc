/// machine_call: one execution of one op. Private to the parts of Machine.
#pragma once

#include <vector>

#include "replay/trace/machine.h"

namespace nanquest::trace {

/// One execution: its arguments, and its results.
struct Machine::Call {
  InputSlots& inputs;
  bool isolated = false;
  std::vector<c10::IValue> stack;
  std::vector<at::Tensor> tensors;  ///< every tensor argument
  struct Mutable {
    TensorId row;
    at::Tensor tensor;
  };
  std::vector<Mutable> mutables;  ///< arguments that the op writes
  std::vector<at::Tensor> returned;
};

}  // namespace nanquest::trace
