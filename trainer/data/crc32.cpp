#include "trainer/data/crc32.h"

#include <array>
#include <cstring>

namespace nanquest::trainer {
namespace {

constexpr std::size_t kAtOnce = 8;

/// Table n holds the remainders of a byte followed by n zero bytes ("slicing by eight", Kounavis and Berry,
/// 2005).
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, kAtOnce> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0);
    tables[0][byte] = value;
  }
  for (std::size_t n = 1; n < kAtOnce; ++n)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[n][byte] = (tables[n - 1][byte] >> 8) ^ tables[0][tables[n - 1][byte] & 255];
  return tables;
}();

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t value = ~0u;
  for (; bytes.size() >= kAtOnce; bytes = bytes.subspan(kAtOnce)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= value;
    value = 0;
    for (std::size_t n = 0; n < kAtOnce; ++n) value ^= kTables[kAtOnce - 1 - n][(word >> (8 * n)) & 255];
  }
  for (const std::byte byte : bytes)
    value = (value >> 8) ^ kTables[0][(value ^ static_cast<std::uint32_t>(byte)) & 255];
  return ~value;
}

}  // namespace nanquest::trainer
