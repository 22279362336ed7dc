/// Rows of the tables, and small functions that the parts of the recorder share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "probe/numerics/hash.h"
#include "probe/snapshot/model.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {

/// "trace/slot_data/" and 17 give "trace/slot_data/000017".
inline std::string numbered(const char* prefix, std::size_t n) {
  char text[64];
  std::snprintf(text, sizeof text, "%s%06zu", prefix, n);
  return text;
}

/// Path of the values of an op that may not be repeatable: "trace/opaque/000017/0".
inline std::string opaque_path(std::int32_t op, const std::string& name) {
  return numbered("trace/opaque/", static_cast<std::size_t>(op)) + "/" + name;
}

/// Memory that may be written without an op is compared in full at every read up to this size. What programs
/// fill through NumPy during a step is small; whole data sets that they slice are larger and are not written.
inline constexpr std::size_t kMaxSharedBytes = std::size_t{1} << 20;

/// Hash of a CPU storage's bytes.
inline std::uint64_t hash_of_storage(const c10::Storage& storage) {
  return hash_bytes(storage.data(), storage.nbytes());
}

/// Plain memory of an element type that the file format knows.
inline bool can_record(const at::Tensor& t) {
  return is_plain(t) && dtype_of(t.scalar_type()).has_value();
}

/// Key under which a backward node and the forward op that made it are matched.
inline std::uint64_t sequence_key(std::uint64_t thread, std::int64_t sequence) {
  return thread * 0x9E3779B97F4A7C15ull ^ static_cast<std::uint64_t>(sequence);
}

/// TensorFlag bits of a tensor with memory.
inline std::uint32_t tensor_flags(const at::Tensor& t) {
  std::uint32_t flags = 0;
  if (t.is_conj()) flags |= kTensorConj;
  if (t.is_neg()) flags |= kTensorNeg;
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) flags |= kTensorWrappedNumber;
  if (t.requires_grad()) flags |= kTensorRequiresGrad;
  return flags;
}

/// A kept tensor's row without its values.
inline NamedTensor by_name_only(const std::string& name, const at::Tensor& tensor) {
  NamedTensor row;
  row.name = name;
  row.dtype = dtype_of(tensor.scalar_type()).value_or(DType::uint8);
  row.shape = tensor.sizes().vec();
  return row;
}

/// The row of a tensor with memory, without statistics. `slot` is its slot in the trace.
inline TensorRow row_of(const at::Tensor& t, std::int32_t slot) {
  TensorRow row;
  row.slot = slot;
  row.dtype = dtype_of(t.scalar_type()).value_or(DType::uint8);
  row.flags = tensor_flags(t);
  row.storage_offset = t.storage_offset();
  row.sizes = t.sizes().vec();
  row.strides = t.strides().vec();
  return row;
}

/// The file's element type of a tensor whose bytes are not stored. For types that the format does not know:
/// one that tells whether the type can hold NaN and Inf.
inline DType nearest_dtype(at::ScalarType type) {
  const bool numbers = c10::isFloatingType(type) || c10::isComplexType(type);
  return dtype_of(type).value_or(numbers ? DType::float32 : DType::uint8);
}

/// The row of a tensor whose values can't be read (no plain memory, or memory that this build can't read).
inline TensorRow unseen_row(const at::Tensor& t) {
  TensorRow row;
  row.flags = kTensorOpaque;
  row.dtype = nearest_dtype(t.scalar_type());
  if (!t.is_nested() && !t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) row.sizes = t.sizes().vec();
  row.strides.assign(row.sizes.size(), 0);
  return row;
}

}  // namespace nanquest
