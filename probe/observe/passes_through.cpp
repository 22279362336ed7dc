#include "probe/observe/passes_through.h"

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace nanquest {
namespace {

bool is_wrapped(const at::Tensor& t) {
  constexpr c10::DispatchKeySet wrapped({c10::DispatchKey::Python, c10::DispatchKey::FuncTorchBatched,
                                         c10::DispatchKey::FuncTorchGradWrapper,
                                         c10::DispatchKey::Functionalize});
  return t.defined() && t.key_set().has_any(wrapped);
}

bool holds_wrapped(const c10::IValue& value) {
  if (value.isTensor()) return is_wrapped(value.toTensor());
  if (!value.isList()) return false;
  for (const c10::IValue& element : value.toListRef())
    if (holds_wrapped(element)) return true;
  return false;
}

}  // namespace

bool passes_through(c10::ArrayRef<const c10::IValue> inputs) {
  if (c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) ||
      c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Functionalize) ||
      c10::impl::TorchDispatchModeTLS::any_modes_set())
    return true;
  for (const c10::IValue& value : inputs)
    if (holds_wrapped(value)) return true;
  return false;
}

}  // namespace nanquest
