#pragma once

#include <cstdint>

namespace nanquest::trainer {

/// A file that identifies a tokenizer.
struct TokenizerFile {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};

}  // namespace nanquest::trainer
