/// Scans of floating-point memory with a given implementation. Internal to the room; tests run every one.
#pragma once

#include "probe/numerics/hash.h"
#include "probe/numerics/implementation.h"
#include "probe/numerics/scan.h"

namespace nanquest::detail {

/// `scan` for float64, float32, float16 and bfloat16. `type` must be one of them. Every whole block of
/// kScanBlock bytes is added to `hash` (may be null) while it is in the first-level cache. The caller adds
/// the bytes after the last whole block.
ScanResult scan_float(const Implementation& with, DType type, const void* data, std::size_t n,
                      ExponentHistogram* histogram, HashState* hash = nullptr);

/// `scan` for the two fp8 types: counts of the 256 patterns, evaluated with a table.
ScanResult scan_fp8(DType type, const void* data, std::size_t n, ExponentHistogram* histogram);

/// `any_non_finite` for the six floating-point types.
bool any_non_finite(const Implementation& with, DType type, const void* data, std::size_t n);

}  // namespace nanquest::detail
