#include "replay/audit/flipped_bit.h"

#include <ATen/ATen.h>

#include "probe/numerics/hash.h"

namespace nanquest {
namespace {

constexpr double kBytesPerSecond = 5e9;  // of hash_contents, in memory that the cache holds

}  // namespace

std::optional<FlippedBit> find_flipped_bit(const at::Tensor& here, std::uint64_t hash, double seconds) {
  if (!here.defined() || here.is_complex() || here.numel() == 0) return std::nullopt;
  at::Tensor copy = here.detach().contiguous().clone();
  const std::size_t bytes = copy.nbytes();
  const double work = 8.0 * static_cast<double>(bytes) * static_cast<double>(bytes);
  if (work > seconds * kBytesPerSecond) return std::nullopt;
  auto* data = static_cast<unsigned char*>(copy.data_ptr());
  const auto size = static_cast<std::size_t>(copy.element_size());
  for (std::size_t byte = 0; byte < bytes; ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      data[byte] = static_cast<unsigned char>(data[byte] ^ (1U << bit));
      if (hash_contents(data, bytes) == hash) {
        FlippedBit found;
        found.element = static_cast<std::int64_t>(byte / size);
        found.bit = static_cast<int>(8 * (byte % size)) + bit;
        found.recorded = copy.flatten()[found.element].to(at::kDouble).item<double>();
        found.here = here.flatten()[found.element].to(at::kDouble).item<double>();
        return found;
      }
      data[byte] = static_cast<unsigned char>(data[byte] ^ (1U << bit));
    }
  return std::nullopt;
}

}  // namespace nanquest
