/// A tensor that is known but not kept alive.
///
/// It holds the storage weakly and remembers the tensor's view of it. With a weak reference to the tensor
/// itself torch.utils.swap_tensors would refuse; a strong one would keep a model alive that its program has
/// deleted.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <vector>

namespace nanquest::attach {

class WeakTensor {
 public:
  WeakTensor() = default;
  /// `tensor` must be plain memory (see is_plain); anything else is never alive.
  explicit WeakTensor(const at::Tensor& tensor);

  /// A tensor without history over the same memory; undefined if that was freed or has become too small.
  at::Tensor lock() const;
  bool alive() const { return !storage_.expired(); }
  /// Its storage, which may be freed by now; the address is not reused as long as this lives.
  const c10::StorageImpl* address() const { return address_; }
  /// The same view of other memory: `values` is that storage as a 1-D tensor. Undefined if it doesn't fit.
  at::Tensor over(const at::Tensor& values) const;
  /// Whether it uses this storage, which must be alive.
  bool lies_in(const c10::StorageImpl* storage) const { return address_ == storage && alive(); }
  /// Whether it is the same part of the same memory.
  bool is(const at::Tensor& tensor) const;

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_{c10::intrusive_ptr<c10::StorageImpl>()};
  const c10::StorageImpl* address_ = nullptr;
  c10::DispatchKeySet keys_;
  caffe2::TypeMeta type_;
  std::vector<std::int64_t> sizes_, strides_;
  std::int64_t offset_ = 0;
  std::size_t bytes_ = 0;  ///< of the storage, as far as the tensor reaches
};

}  // namespace nanquest::attach
