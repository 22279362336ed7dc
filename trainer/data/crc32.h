/// CRC-32 as zlib, gzip and Python's zlib.crc32 have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nanquest::trainer {

/// Polynomial 0xedb88320 (reflected), begun with and ended by a complement.
std::uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace nanquest::trainer
