// The operators that have kernels of their own: memory, views, copies, numbers for the host.
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "tests/device/backend/allocator.h"
#include "tests/device/backend/launch.h"
#include "tests/device/backend/one_kernel_each.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

namespace nqdev {

at::Tensor cpu_view(const at::Tensor& t) {
  const auto options = t.options().device(at::kCPU);
  // An address that is never read where there are no elements.
  static char nothing[64];
  char* const base = t.numel() ? static_cast<char*>(t.storage().mutable_data()) : nothing;
  char* const first =
      t.numel() ? base + t.storage_offset() * static_cast<std::int64_t>(t.element_size()) : base;
  at::Tensor view = at::from_blob(first, t.sizes(), t.strides(), options);
  if (t.is_conj()) view._set_conj(true);
  if (t.is_neg()) view._set_neg(true);
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) view.unsafeGetTensorImpl()->set_wrapped_number(true);
  return view;
}

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty_memory_format(at::IntArrayRef size, std::optional<at::ScalarType> type,
                               std::optional<at::Layout>, std::optional<at::Device> device,
                               std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return at::Tensor(
      at::detail::empty_generic(size, device_allocator(), kKeys, c10::dtype_or_default(type), format));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  return at::Tensor(at::detail::empty_strided_generic(size, stride, device_allocator(), kKeys,
                                                      c10::dtype_or_default(type)));
}

/// A copy on a stream; not counted as a kernel.
void put_copy(int device, const at::Tensor& to, const at::Tensor& from) {
  check_alive();
  count(Counter::copies);
  enqueue(device, current_stream(device), [to, from] { as_the_device([&] { to.copy_(from); }); });
}

void between_devices(const at::Tensor& from, const at::Tensor& to) {
  const int a = from.device().index(), b = to.device().index();
  const auto ready = std::make_shared<Event>(), copied = std::make_shared<Event>();
  record(ready, b, current_stream(b));
  wait(ready, a, current_stream(a));
  put_copy(a, cpu_view(to), cpu_view(from));
  record(copied, a, current_stream(a));
  wait(copied, b, current_stream(b));
}

void from_host(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  // What the host may change when this returns is copied first. Pinned memory is read when the stream gets there.
  const bool later = non_blocking && from.numel() && is_pinned(from.const_data_ptr());
  put_copy(to.device().index(), cpu_view(to), later ? from.detach() : from.detach().clone());
}

void to_host(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const int device = from.device().index();
  count(Counter::host_reads);
  put_copy(device, to.detach(), cpu_view(from));
  const bool later = non_blocking && to.numel() && is_pinned(to.const_data_ptr());
  if (!later) synchronise(device, current_stream(device));
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  const bool from_us = is_ours(self), to_us = is_ours(dst);
  if (self.numel() == 0) return dst;
  const at::Tensor from = self.sizes() == dst.sizes() ? self : self.expand(dst.sizes());
  const c10::OptionalDeviceGuard guard(to_us ? dst.device() : self.device());
  if (from_us && to_us && self.device() != dst.device())
    between_devices(from, dst);
  else if (from_us && to_us)
    put_copy(dst.device().index(), cpu_view(dst), cpu_view(from));
  else if (to_us)
    from_host(from, dst, non_blocking);
  else
    to_host(from, dst, non_blocking);
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  const int device = self.device().index();
  count(Counter::host_reads);
  synchronise(device, current_stream(device));
  at::Scalar value;
  as_the_device([&] { value = at::native::_local_scalar_dense_cpu(cpu_view(self)); });
  return value;
}

/// Sizes and strides (empty: contiguous), and the memory for them.
void reshape(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  at::TensorImpl* const impl = self.unsafeGetTensorImpl();
  if (stride.empty())
    impl->set_sizes_contiguous(size);
  else
    impl->set_sizes_and_strides(size, stride);
  const std::size_t bytes = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.element_size(), static_cast<std::size_t>(self.storage_offset()));
  if (self.numel() && bytes > self.storage().nbytes())
    at::native::resize_bytes_nocuda(self.storage(), static_cast<std::int64_t>(bytes));
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  if (self.sizes() != size) reshape(self, size, {});
  if (format) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, std::int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  reshape(self, size, stride);
  return self;
}

void record_stream_op(at::Tensor& self, c10::Stream stream) {
  record_stream(self.storage().data_ptr(), stream);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&launch>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty_memory_format);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("record_stream", &record_stream_op);
  m.impl("as_strided", [](const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                          std::optional<std::int64_t> offset) {
    return at::native::as_strided_tensorimpl(self, size, stride, offset);
  });
  // The one way to attend that is written in operators that are here.
  m.impl("_fused_sdp_choice",
         [](const at::Tensor&, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, double,
            bool, std::optional<double>, bool) -> std::int64_t { return 0; });
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Storage", [](at::Tensor& self, at::Storage source) -> at::Tensor& {
    return at::native::set_(self, std::move(source));
  });
  m.impl("set_.source_Tensor", [](at::Tensor& self, const at::Tensor& source) -> at::Tensor& {
    return at::native::set_tensor_(self, source);
  });
  m.impl("set_", [](at::Tensor& self) -> at::Tensor& {
    const at::Tensor none = at::empty({0}, self.options());
    return at::native::set_tensor_(self, none);
  });
}

namespace {
[[maybe_unused]] const bool kernels_registered = (register_one_kernel_each(), true);
}  // namespace

}  // namespace nqdev
