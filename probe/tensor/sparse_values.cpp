#include "probe/tensor/sparse_values.h"

#include <ATen/SparseTensorImpl.h>

#include "probe/tensor/tensor_scan.h"

namespace nanquest {

at::Tensor values_standing_for(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_sparse()) return {};
  const auto* sparse = dynamic_cast<const at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
  if (!sparse) return {};  // a wrapper tensor
  at::Tensor values = sparse->values();
  return is_plain(values) && dtype_of(values.scalar_type()) ? values : at::Tensor();
}

}  // namespace nanquest
