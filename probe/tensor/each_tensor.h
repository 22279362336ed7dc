/// The tensors inside an argument or a returned value.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace nanquest {

/// Calls `f(const at::Tensor&)` with every tensor inside `value` (lists, optionals, tuples), in schema order,
/// undefined ones included. Allocates nothing.
template <class F>
void each_tensor(const c10::IValue& value, F&& f) {
  if (value.isTensor()) {
    f(value.toTensor());
  } else if (value.isList()) {
    const bool optional = value.isOptionalTensorList();
    for (const c10::IValue& element : value.toListRef())
      if (!(optional && element.isNone())) each_tensor(element, f);
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) each_tensor(element, f);
  }
}

}  // namespace nanquest
