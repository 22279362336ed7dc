// Copies past the caches: the same bytes as any other copy, and no others.
#include "probe/tensor/stream_copy.h"

#include <gtest/gtest.h>

#include <vector>

#include "probe/tensor/parallel.h"
#include "tests/numerics/byte_pattern.h"

namespace nanquest {
namespace {

using testing::pattern;

using Copy = void (*)(void*, const void*, std::size_t);

/// Copies `bytes` bytes between addresses that are `to` and `from` bytes after a multiple of 64.
void expect_copied(Copy copy, std::size_t bytes, std::size_t to, std::size_t from) {
  const auto source = pattern(bytes + from + 64);
  std::vector<unsigned char> target(bytes + 192, 0xee);
  const std::size_t border = -reinterpret_cast<std::uintptr_t>(target.data()) % 64;
  const std::size_t begin = border + to;
  copy(target.data() + begin, source.data() + from, bytes);
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool inside = i >= begin && i < begin + bytes;
    ASSERT_EQ(target[i], inside ? source[from + i - begin] : 0xee)
        << bytes << " bytes to " << to << " from " << from << ", at " << i;
  }
}

TEST(StreamCopy, EveryByteAndNoOtherWhateverTheAlignment) {
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 200u, 16383u, 16384u, 16385u, 16384u + 63u, 50000u})
    for (const std::size_t to : {0u, 1u, 16u, 63u})
      for (const std::size_t from : {0u, 7u, 16u}) expect_copied(stream_copy, bytes, to, from);
}

TEST(StreamCopy, LargeOnesByAllThreads) {
  for (const std::size_t bytes : {kWorthWaking - 1, kWorthWaking, 3 * kWorthWaking + 12345})
    expect_copied(parallel_copy, bytes, 3, 5);
}

}  // namespace
}  // namespace nanquest
