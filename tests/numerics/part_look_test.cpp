// The CUDA kernels that look at many tensors at once, run on the CPU: compared with the gate's own loops.
#include "probe/numerics/part_look.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "probe/numerics/gate_loops.h"
#include "tests/numerics/random_bits.h"

namespace nanquest {
namespace {

constexpr DType kGateTypes[] = {DType::float64, DType::float32, DType::float16, DType::bfloat16};

std::vector<int> any_order(std::mt19937_64& rng) {
  std::vector<int> order(PartLook::kThreads);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), rng);
  return order;
}

/// LookedAt in host memory, some of them not aligned to sixteen bytes.
struct LookedAt {
  std::vector<std::vector<unsigned char>> memory;
  std::vector<DType> types;
  std::vector<std::size_t> counts;
  std::vector<LookTable> tables{LookTable{}};

  void add(DType type, std::size_t n, testing::Mix mix, std::mt19937_64& rng) {
    const std::size_t shift = memory.size() % 3 == 1 ? dtype_size(type) : 0;
    std::vector<unsigned char> bytes(shift);
    const auto values = testing::random_elements(type, n, mix, rng);
    bytes.insert(bytes.end(), values.begin(), values.end());
    memory.push_back(std::move(bytes));
    types.push_back(type);
    counts.push_back(n);
    const void* const data = memory.back().data() + shift;
    if (!tables.back().add(type, data, n)) {
      EXPECT_TRUE(tables.emplace_back().add(type, data, n));
    }
  }
  const void* data(std::size_t i) const {
    return memory[i].data() + memory[i].size() - counts[i] * dtype_size(types[i]);
  }
};

TEST(PartLook, FindsWhatTheGatesLoopsFind) {
  std::mt19937_64 rng(1);
  LookedAt all;
  for (const DType type : kGateTypes)
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{4099},
                                std::size_t{LookTable::most(type) - 1}, std::size_t{LookTable::most(type)},
                                std::size_t{2 * LookTable::most(type) + 13}})
      for (const testing::Mix mix : {testing::Mix::ordinary, testing::Mix::hostile, testing::Mix::any_bits})
        all.add(type, n, mix, rng);
  for (int i = 0; i < 2 * LookTable::kMostTensors; ++i)
    all.add(DType::float32, 3, testing::Mix::ordinary, rng);
  ASSERT_GT(all.tables.size(), 2u);
  const std::size_t count = all.counts.size();
  std::vector<double> found(3 * count);
  float word = -1;
  look_here(all.tables, {}, any_order(rng), found.data(), &word);
  EXPECT_EQ(word, 1);
  for (std::size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(std::string(dtype_name(all.types[i])) + " " + std::to_string(all.counts[i]));
    const LoopStats cpu = measure(all.types[i], all.data(i), all.counts[i]);
    EXPECT_EQ(found[count + i], cpu.amax);
    EXPECT_EQ(found[2 * count + i], static_cast<double>(cpu.non_finite));
    if (std::isfinite(cpu.sum_squares))
      EXPECT_NEAR(found[i], cpu.sum_squares, 1e-12 * cpu.sum_squares);
    else
      EXPECT_EQ(std::isnan(found[i]), std::isnan(cpu.sum_squares));
  }
}

TEST(PartLook, TheWordTellsOfAnElementANormOrANumber) {
  std::mt19937_64 rng(2);
  const float fine = 2.5F, infinite = INFINITY;
  const std::uint16_t half_nan = 0x7e00, brain = 0x4020;  // 2.5
  const double huge[] = {1e200, -1e200};                  // the sum of their squares leaves fp64
  const auto word_of = [&](DType type, const void* data, std::size_t n, const void* number, DType its) {
    LookTable table;
    EXPECT_TRUE(table.add(type, data, n));
    LookNumbers numbers;
    numbers.data[0] = number, numbers.type[0] = its, numbers.count = 1;
    double found[4];
    float word = -1;
    look_here({&table, 1}, numbers, any_order(rng), found, &word);
    return std::pair(word, found[3]);
  };
  EXPECT_EQ(word_of(DType::float32, &fine, 1, &brain, DType::bfloat16), std::pair(0.0F, 2.5));
  EXPECT_EQ(word_of(DType::float32, &infinite, 1, &fine, DType::float32), std::pair(1.0F, 2.5));
  EXPECT_EQ(word_of(DType::float64, huge, 2, &fine, DType::float32).first, 1);
  EXPECT_EQ(word_of(DType::float32, &fine, 1, &half_nan, DType::float16).first, 1);
  EXPECT_EQ(word_of(DType::float32, &fine, 0, &infinite, DType::float32), std::pair(1.0F, HUGE_VAL));
}

TEST(PartLook, SumsDoNotDependOnTheOrderOfThreads) {
  std::mt19937_64 rng(3);
  LookedAt all;
  all.add(DType::float32, 400'000, testing::Mix::ordinary, rng);
  double once = 0;
  for (int i = 0; i < 4; ++i) {
    double found[3];
    float word;
    look_here(all.tables, {}, any_order(rng), found, &word);
    if (i == 0) once = found[0];
    EXPECT_EQ(found[0], once);
  }
}

}  // namespace
}  // namespace nanquest
