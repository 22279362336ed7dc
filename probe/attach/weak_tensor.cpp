#include "probe/attach/weak_tensor.h"

#include <ATen/ATen.h>

#include "probe/tensor/tensor_scan.h"

namespace nanquest::attach {
namespace {

/// Bytes from the start of the storage to the end of the tensor's last element.
std::size_t reach(const at::Tensor& t) {
  if (t.numel() == 0) return 0;
  std::int64_t last = t.storage_offset();
  for (std::int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return static_cast<std::size_t>(last + 1) * t.element_size();
}

}  // namespace

WeakTensor::WeakTensor(const at::Tensor& tensor) {
  if (!tensor.defined() || !is_plain(tensor)) return;
  address_ = tensor.storage().unsafeGetStorageImpl();
  storage_ = tensor.storage().getWeakStorageImpl();
  keys_ = tensor.key_set();
  type_ = tensor.dtype();
  sizes_ = tensor.sizes().vec();
  strides_ = tensor.strides().vec();
  offset_ = tensor.storage_offset();
  bytes_ = reach(tensor);
}

at::Tensor WeakTensor::lock() const {
  auto storage = storage_.lock();
  if (!storage || storage->nbytes() < bytes_) return {};
  at::Tensor alias = at::detail::make_tensor<at::TensorImpl>(at::TensorImpl::VIEW,
                                                             c10::Storage(std::move(storage)), keys_, type_);
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(sizes_, strides_, offset_);
  return alias;
}

at::Tensor WeakTensor::over(const at::Tensor& values) const {
  if (!values.defined() || values.dtype() != type_ || values.nbytes() < bytes_) return {};
  return values.as_strided(sizes_, strides_, offset_);
}

bool WeakTensor::is(const at::Tensor& tensor) const {
  return alive() && tensor.defined() && tensor.has_storage() &&
         tensor.storage().unsafeGetStorageImpl() == address_ && tensor.storage_offset() == offset_ &&
         tensor.sizes() == sizes_ && tensor.strides() == strides_ && tensor.dtype() == type_;
}

}  // namespace nanquest::attach
