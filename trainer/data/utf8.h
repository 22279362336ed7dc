/// Is it text?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace nanquest::trainer {

/// Offset of the first byte that is NUL or not part of well-formed UTF-8 (no overlong forms, no surrogates,
/// nothing above U+10FFFF); bytes.size() if there is none.
std::size_t first_non_text(std::span<const std::uint8_t> bytes);

/// A copy in which each byte that `first_non_text` would object to is '?'.
std::string as_text(std::span<const std::uint8_t> bytes);

}  // namespace nanquest::trainer
