#pragma once

#include <cstdint>

namespace nanquest::trainer {

/// A file by which one tokenizer is told from another.
struct TokenizerFile {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};

}  // namespace nanquest::trainer
