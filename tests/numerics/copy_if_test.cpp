// The CUDA kernel that copies tensors if a word says so, run on the CPU with its threads in any order.
#include "probe/numerics/copy_if.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

namespace nanquest {
namespace {

using Bytes = std::vector<unsigned char>;

/// Bytes around a copied range that nobody may write.
constexpr std::size_t kMargin = 16;

TEST(CopyIf, CopiesEachTensorAndNothingBeside) {
  std::mt19937_64 rng(1);
  std::vector<CopyTable> tables(1);
  std::vector<Bytes> from, to;
  std::vector<std::size_t> shifts;
  const std::size_t part = CopyTable::kPartBytes;
  for (int round = 0; round < 30; ++round)
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{6}, std::size_t{8},
                                std::size_t{4099}, part - 1, part, 2 * part + 13}) {
      if (round > 0 && n >= part) continue;
      const std::size_t shift = round % 3 == 1 ? 2 : 0;  // a view that does not lie on a multiple of 8 bytes
      shifts.push_back(shift);
      from.emplace_back(n + shift);
      std::generate(from.back().begin(), from.back().end(),
                    [&] { return static_cast<unsigned char>(rng()); });
      to.emplace_back(n + shift + 2 * kMargin, static_cast<unsigned char>(0xee));
      void* const target = to.back().data() + kMargin + shift;
      const void* const source = from.back().data() + shift;
      if (!tables.back().add(target, source, n)) {
        EXPECT_TRUE(tables.emplace_back().add(target, source, n));
      }
    }
  EXPECT_GT(tables.size(), 1u);  // more than one launch
  for (const CopyTable& table : tables) {
    std::vector<std::uint32_t> work(std::size_t{table.parts()} * CopyTable::kThreads);
    std::iota(work.begin(), work.end(), 0u);
    std::shuffle(work.begin(), work.end(), rng);
    for (const std::uint32_t item : work)
      CopyTable::copy(table, item / CopyTable::kThreads, static_cast<int>(item % CopyTable::kThreads));
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    Bytes right(to[i].size(), 0xee);
    std::copy(from[i].begin() + static_cast<std::ptrdiff_t>(shifts[i]), from[i].end(),
              right.begin() + static_cast<std::ptrdiff_t>(kMargin + shifts[i]));
    EXPECT_EQ(to[i], right) << "tensor " << i << " of " << from[i].size() << " bytes";
  }
}

TEST(CopyIf, AFullTableTakesNoMore) {
  CopyTable table;
  unsigned char a = 0, b = 0;
  for (int i = 0; i < CopyTable::kMost; ++i) ASSERT_TRUE(table.add(&a, &b, 1));
  EXPECT_FALSE(table.add(&a, &b, 1));
  EXPECT_EQ(table.parts(), static_cast<std::uint32_t>(CopyTable::kMost));
}

}  // namespace
}  // namespace nanquest
