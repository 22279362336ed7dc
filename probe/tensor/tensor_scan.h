/// Statistics and hashes of tensors: the bridge from ATen to probe/numerics.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "probe/base/dtype.h"
#include "probe/snapshot/model.h"

namespace nanquest {

/// The snapshot's name for a ScalarType; nothing for types that a snapshot can't hold (quantised, bits).
std::optional<DType> dtype_of(at::ScalarType type);

/// The ScalarType of a DType.
at::ScalarType scalar_type_of(DType type);

/// The widest floating-point type in which a device computes: Metal has no double.
at::ScalarType widest_float(at::Device device);

/// Complex numbers as pairs of real ones, in a last dimension; all else as it is. A view where that is
/// possible (not of conjugated ones).
at::Tensor as_reals(const at::Tensor& tensor);

/// True for plain memory: strided, with storage, no functorch, fake or Python wrapper. On a CPU it can be
/// read by address; on any other device ATen's ops copy and compare it.
bool is_plain(const at::Tensor& tensor);

/// Statistics of a plain tensor's current values, in logical order; values on a device are copied to the host
/// first (waits for its stream). With `hash`, also the hash of its contiguous bytes. Nothing if the tensor is
/// not plain or its type is unknown. May throw c10::Error on device faults.
std::optional<StatsRow> stats_of(const at::Tensor& tensor, bool hash);

/// Copies the bytes of the tensor's whole storage to a contiguous 1-D CPU tensor of the tensor's type; if
/// they do not fill a whole number of elements, to a uint8 tensor.
at::Tensor copy_storage(const at::Tensor& tensor);
/// The same for a storage whose elements are of `type`.
at::Tensor copy_storage(const c10::Storage& storage, at::ScalarType type);

}  // namespace nanquest
