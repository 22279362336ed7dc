#include "trainer/data/utf8.h"

namespace nanquest::trainer {
namespace {

/// Length of the well-formed character at the front, 0 if there is none (Unicode 15, table 3-7).
std::size_t character(std::span<const std::uint8_t> s) {
  const std::uint8_t a = s[0];
  if (a == 0) return 0;
  if (a < 0x80) return 1;
  std::size_t length = 0;
  std::uint8_t low = 0x80, high = 0xbf;
  if (a >= 0xc2 && a <= 0xdf) {
    length = 2;
  } else if (a >= 0xe0 && a <= 0xef) {
    length = 3;
    if (a == 0xe0) low = 0xa0;
    if (a == 0xed) high = 0x9f;
  } else if (a >= 0xf0 && a <= 0xf4) {
    length = 4;
    if (a == 0xf0) low = 0x90;
    if (a == 0xf4) high = 0x8f;
  }
  if (length == 0 || s.size() < length || s[1] < low || s[1] > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (s[i] < 0x80 || s[i] > 0xbf) return 0;
  return length;
}

}  // namespace

std::size_t first_non_text(std::span<const std::uint8_t> bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t length = character(bytes.subspan(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string as_text(std::span<const std::uint8_t> bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = character(bytes);
    if (length == 0) {
      text += '?';
    } else {
      text.append(reinterpret_cast<const char*>(bytes.data()), length);
    }
    bytes = bytes.subspan(length == 0 ? 1 : length);
  }
  return text;
}

}  // namespace nanquest::trainer
