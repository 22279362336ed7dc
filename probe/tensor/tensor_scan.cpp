#include "probe/tensor/tensor_scan.h"

#include <ATen/ATen.h>

#include "probe/tensor/back_end.h"
#include "probe/tensor/copy_memory.h"
#include "probe/tensor/parallel.h"

namespace nanquest {
std::optional<DType> dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return DType::float64;
    case at::kFloat:
      return DType::float32;
    case at::kHalf:
      return DType::float16;
    case at::kBFloat16:
      return DType::bfloat16;
    case at::kFloat8_e4m3fn:
      return DType::float8_e4m3fn;
    case at::kFloat8_e5m2:
      return DType::float8_e5m2;
    case at::kLong:
      return DType::int64;
    case at::kInt:
      return DType::int32;
    case at::kShort:
      return DType::int16;
    case at::kChar:
      return DType::int8;
    case at::kByte:
      return DType::uint8;
    case at::kBool:
      return DType::boolean;
    case at::kComplexFloat:
      return DType::complex64;
    case at::kComplexDouble:
      return DType::complex128;
    case at::kUInt16:
      return DType::uint16;
    case at::kUInt32:
      return DType::uint32;
    case at::kUInt64:
      return DType::uint64;
    default:
      return std::nullopt;
  }
}

at::ScalarType scalar_type_of(DType type) {
  constexpr at::ScalarType types[kDTypeCount] = {
      at::kDouble,       at::kFloat,         at::kHalf,   at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2,
      at::kLong,         at::kInt,           at::kShort,  at::kChar,     at::kByte,          at::kBool,
      at::kComplexFloat, at::kComplexDouble, at::kUInt16, at::kUInt32,   at::kUInt64};
  return types[static_cast<int>(type)];
}

at::ScalarType widest_float(at::Device device) {
  return device.is_mps() ? at::kFloat : at::kDouble;
}

at::Tensor as_reals(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

bool is_plain(const at::Tensor& t) {
  if (!t.defined() || t.is_nested() || t.layout() != at::kStrided || !t.has_storage() || t.is_meta())
    return false;
  constexpr c10::DispatchKeySet wrapped({c10::DispatchKey::Python, c10::DispatchKey::FuncTorchBatched,
                                         c10::DispatchKey::FuncTorchGradWrapper,
                                         c10::DispatchKey::Functionalize, c10::DispatchKey::ZeroTensor});
  return !t.key_set().has_any(wrapped);
}

std::optional<StatsRow> stats_of(const at::Tensor& tensor, bool hash) {
  if (!is_plain(tensor)) return std::nullopt;
  const auto type = dtype_of(tensor.scalar_type());
  if (!type) return std::nullopt;
  // Conjugate and negative views share memory with a tensor that is scanned itself; only the signs of their
  // values differ.
  return back_end_of(tensor.device().type()).stats(tensor, *type, hash);
}

at::Tensor copy_storage(const at::Tensor& tensor) {
  return copy_storage(tensor.storage(), tensor.scalar_type());
}

at::Tensor copy_storage(const c10::Storage& storage, at::ScalarType type) {
  const auto bytes = static_cast<std::int64_t>(storage.nbytes());
  const auto item = static_cast<std::int64_t>(c10::elementSize(type));
  const bool whole = item > 0 && bytes % item == 0;
  const auto options = at::TensorOptions().dtype(whole ? type : at::kByte);
  const std::int64_t elements = whole ? bytes / item : bytes;
  at::Tensor copy;
  if (static_cast<std::size_t>(bytes) >= kLargeCopy)
    copy = large_copy_memory(elements, whole ? type : at::kByte);
  if (!copy.defined()) copy = at::empty({elements}, options.device(at::kCPU));
  if (bytes == 0) return copy;
  if (storage.device().is_cpu()) {
    parallel_copy(copy.mutable_data_ptr(), storage.data(), static_cast<std::size_t>(bytes));
    return copy;
  }
  const at::Tensor flat = at::empty({0}, options.device(storage.device())).set_(storage);
  copy.copy_(flat.view({-1}));
  return copy;
}

}  // namespace nanquest
