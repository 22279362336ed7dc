/// Memory that this process takes: what the row of a step says of it.
#pragma once

#include <c10/core/Device.h>

#include <vector>

namespace nanquest {

/// Bytes of this process that are in the machine's memory (the resident set); NaN where the system does not
/// tell. Costs a few microseconds.
double resident_bytes() noexcept;

/// The most bytes that the tensors of one of these devices took at once since the program began, as its
/// allocator counts them; NaN without a device whose allocator counts.
double device_peak_bytes(const std::vector<c10::Device>& devices) noexcept;

}  // namespace nanquest
