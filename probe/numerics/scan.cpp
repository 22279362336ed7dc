#include "probe/numerics/scan.h"

#include <algorithm>
#include <cstring>

#include "probe/numerics/float_scan.h"
#include "probe/numerics/hash.h"

namespace nanquest {
namespace {

template <class T>
T load(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
ScanResult scan_integer(const void* data, std::size_t n) {
  ScanResult r;
  r.count = n;
  T low = 0, high = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T value = load<T>(data, i);
    r.zero += value == 0;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  r.amax = std::max(static_cast<double>(high), -static_cast<double>(low));
  return r;
}

}  // namespace

void ScanResult::merge(const ScanResult& later) {
  if (first_bad < 0 && later.first_bad >= 0) first_bad = static_cast<std::int64_t>(count) + later.first_bad;
  count += later.count;
  nan += later.nan;
  pos_inf += later.pos_inf;
  neg_inf += later.neg_inf;
  zero += later.zero;
  subnormal += later.subnormal;
  amax = std::max(amax, later.amax);
  if (amin_nonzero == 0 || (later.amin_nonzero != 0 && later.amin_nonzero < amin_nonzero))
    amin_nonzero = later.amin_nonzero;
  sum_squares += later.sum_squares;
}

ScanResult scan(DType type, const void* data, std::size_t n, ExponentHistogram* histogram) {
  switch (type) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      return detail::scan_float(detail::implementation(), type, data, n, histogram);
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return detail::scan_fp8(type, data, n, histogram);
    case DType::complex64:
      return scan(DType::float32, data, 2 * n, histogram);
    case DType::complex128:
      return scan(DType::float64, data, 2 * n, histogram);
    case DType::int64:
      return scan_integer<std::int64_t>(data, n);
    case DType::int32:
      return scan_integer<std::int32_t>(data, n);
    case DType::int16:
      return scan_integer<std::int16_t>(data, n);
    case DType::int8:
      return scan_integer<std::int8_t>(data, n);
    case DType::uint8:
      return scan_integer<std::uint8_t>(data, n);
    case DType::boolean: {
      ScanResult r = scan_integer<std::uint8_t>(data, n);
      r.amax = std::min(r.amax, 1.0);
      return r;
    }
    case DType::uint16:
      return scan_integer<std::uint16_t>(data, n);
    case DType::uint32:
      return scan_integer<std::uint32_t>(data, n);
    case DType::uint64:
      return scan_integer<std::uint64_t>(data, n);
  }
  return {};
}

namespace {

/// At most one part of nq64p.
ScanAndHash scan_and_hash_part(DType type, const unsigned char* p, std::size_t n,
                               ExponentHistogram* histogram) {
  if (type == DType::complex64) return scan_and_hash_part(DType::float32, p, 2 * n, histogram);
  if (type == DType::complex128) return scan_and_hash_part(DType::float64, p, 2 * n, histogram);
  const std::size_t element = dtype_size(type);
  ScanAndHash both;
  HashState hash;
  if (element > 1 && dtype_is_float(type)) {
    both.scan = detail::scan_float(detail::implementation(), type, p, n, histogram, &hash);
    const std::size_t rest = n * element % detail::kScanBlock;
    both.hash = hash.finish(p + (n * element - rest), rest);
    return both;
  }
  // Large enough to make the fixed cost of a call small, small enough to be in the second-level cache for the
  // hash.
  constexpr std::size_t chunk = 64 * 1024;
  for (; n > chunk / element; n -= chunk / element, p += chunk) {
    both.scan.merge(scan(type, p, chunk / element, histogram));
    hash.add_blocks(p, chunk / kHashBlock);
  }
  both.scan.merge(scan(type, p, n, histogram));
  both.hash = hash.finish(p, n * element);
  return both;
}

}  // namespace

ScanAndHash scan_and_hash(DType type, const void* data, std::size_t n, ExponentHistogram* histogram) {
  const std::size_t size = dtype_size(type), part = kHashPart / size;
  const auto* p = static_cast<const unsigned char*>(data);
  if (n <= part) return scan_and_hash_part(type, p, n, histogram);
  ScanAndHash all;
  PartHashes hashes;
  for (std::size_t done = 0; done < n; done += part) {
    const ScanAndHash found = scan_and_hash_part(type, p + done * size, std::min(part, n - done), histogram);
    all.scan.merge(found.scan);
    hashes.add(found.hash);
  }
  all.hash = hashes.finish();
  return all;
}

bool any_non_finite(DType type, const void* data, std::size_t n) {
  if (type == DType::complex64) return any_non_finite(DType::float32, data, 2 * n);
  if (type == DType::complex128) return any_non_finite(DType::float64, data, 2 * n);
  return dtype_is_float(type) && detail::any_non_finite(detail::implementation(), type, data, n);
}

}  // namespace nanquest
