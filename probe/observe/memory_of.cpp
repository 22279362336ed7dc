#include "probe/observe/memory_of.h"

#include <ATen/core/Tensor.h>

namespace nanquest {

const c10::StorageImpl* memory_of(const c10::IValue& value) {
  at::Tensor tensor;
  if (value.isTensor())
    tensor = value.toTensor();
  else if (value.isTensorList() && !value.toTensorList().empty())
    tensor = value.toTensorList().get(0);
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace nanquest
