/// CRC-32 like zlib, gzip and Python's zlib.crc32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nanquest::trainer {

/// Polynomial 0xedb88320 (reflected), complemented at the beginning and end.
std::uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace nanquest::trainer
