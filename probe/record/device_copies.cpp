#include "probe/record/device_copies.h"

#include <ATen/DeviceGuard.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <utility>

namespace nanquest::record {
namespace {

/// The whole storage as elements as wide as its size allows: kernels move wider elements faster.
at::Tensor flat(const c10::Storage& storage) {
  constexpr std::size_t kWide = 8;
  const bool wide =
      storage.nbytes() % kWide == 0 && reinterpret_cast<std::uintptr_t>(storage.data()) % kWide == 0;
  const auto type = c10::scalarTypeToTypeMeta(wide ? at::kLong : at::kByte);
  const auto key = c10::computeDispatchKey(std::nullopt, std::nullopt, storage.device());
  at::Tensor whole =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), type);
  whole.unsafeGetTensorImpl()->set_sizes_contiguous(
      {static_cast<std::int64_t>(storage.nbytes() / type.itemsize())});
  return whole;
}

}  // namespace

at::Tensor DeviceCopies::of(const c10::Storage& storage) {
  const at::Tensor whole = flat(storage);
  at::Tensor copy = at::empty(whole.sizes(), whole.options());
  if (whole.numel() > 0) {
    from_.push_back(whole);
    to_.push_back(copy);
  }
  return copy;
}

void DeviceCopies::make() {
  const std::vector<at::Tensor> from = std::exchange(from_, {}), to = std::exchange(to_, {});
  std::vector<bool> done(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (done[i]) continue;
    std::vector<at::Tensor> alike, copies;  // kernels over lists take one device and one format
    for (std::size_t k = i; k < from.size(); ++k) {
      if (done[k] || from[k].device() != from[i].device() || from[k].scalar_type() != from[i].scalar_type())
        continue;
      done[k] = true;
      alike.push_back(from[k]);
      copies.push_back(to[k]);
    }
    const at::DeviceGuard guard(from[i].device());
    at::_foreach_copy_(copies, alike);
  }
}

}  // namespace nanquest::record
