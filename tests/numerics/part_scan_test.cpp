// The CUDA kernel's phases, run on the CPU: counts, extremes and hash compared with the CPU's own scan.
#include "probe/numerics/part_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/numerics/naive_scan.h"
#include "tests/numerics/random_bits.h"

namespace nanquest {
namespace {

/// The threads of a group in some order: between two barriers a GPU guarantees none.
std::vector<int> some_order(std::mt19937_64& rng) {
  std::vector<int> order(PartScan<LayoutFp32>::kThreads);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), rng);
  return order;
}

ScanAndHash scan_as_a_device(DType type, const void* data, std::size_t n, std::mt19937_64& rng) {
  std::vector<PartFound> found(part_count(type, n));
  scan_parts_here(type, data, n, some_order(rng), found);
  return merge_parts(type, n, found);
}

/// Lengths around every border of words, stripes, blocks and parts.
std::vector<std::size_t> lengths(DType type) {
  std::vector<std::size_t> all = {0, 1, 2, 3, 5};
  for (const std::size_t border : {std::size_t{8}, std::size_t{64}, kHashBlock, 5 * kHashBlock, kHashPart}) {
    const std::size_t n = border / dtype_size(type);
    for (const std::size_t near : {n - 1, n, n + 1})
      if (n > 1) all.push_back(near);
  }
  all.push_back((2 * kHashPart + 3 * kHashBlock) / dtype_size(type) + 1);
  return all;
}

TEST(PartScan, FindsWhatTheCpuFindsBitForBit) {
  std::mt19937_64 rng(1);
  for (const DType type : {DType::float64, DType::float32, DType::float16, DType::bfloat16,
                           DType::float8_e4m3fn, DType::float8_e5m2})
    for (const std::size_t n : lengths(type))
      for (const testing::Mix mix :
           {testing::Mix::hostile, testing::Mix::any_bits, testing::Mix::with_subnormals}) {
        SCOPED_TRACE(std::string(dtype_name(type)) + " " + std::to_string(n));
        const auto bytes = testing::random_elements(type, n, mix, rng);
        const ScanAndHash here = scan_as_a_device(type, bytes.data(), n, rng);
        const ScanAndHash cpu = scan_and_hash(type, bytes.data(), n);
        EXPECT_SAME_SCAN(here.scan, cpu.scan, testing::sum_tolerance(type));
        EXPECT_EQ(here.hash, cpu.hash);
      }
}

TEST(PartScan, IntegersAndComplexNumbersToo) {
  std::mt19937_64 rng(2);
  for (const DType type :
       {DType::int64, DType::int32, DType::int16, DType::int8, DType::uint64, DType::uint32, DType::uint16,
        DType::uint8, DType::boolean, DType::complex64, DType::complex128})
    for (const std::size_t n : lengths(type))
      for (const bool sparse : {false, true}) {
        SCOPED_TRACE(std::string(dtype_name(type)) + " " + std::to_string(n));
        std::vector<unsigned char> bytes(n * dtype_size(type));
        for (unsigned char& b : bytes)
          b = sparse && rng() % 4 != 0
                  ? 0
                  : static_cast<unsigned char>(type == DType::boolean ? rng() % 2 : rng());
        const ScanAndHash here = scan_as_a_device(type, bytes.data(), n, rng);
        const ScanAndHash cpu = scan_and_hash(type, bytes.data(), n);
        EXPECT_SAME_SCAN(here.scan, cpu.scan, 1e-13);
        EXPECT_EQ(here.hash, cpu.hash);
      }
}

TEST(PartScan, TheLargestNegativeIntegerHasItsMagnitude) {
  std::mt19937_64 rng(3);
  const std::int64_t lowest[] = {0, INT64_MIN, 7};
  const ScanAndHash here = scan_as_a_device(DType::int64, lowest, 3, rng);
  EXPECT_EQ(here.scan.amax, 0x1p63);
  EXPECT_EQ(here.scan.zero, 1u);
}

TEST(PartScan, TheSumOfSquaresDoesNotDependOnTheOrderOfThreads) {
  std::mt19937_64 rng(4);
  const std::size_t n = 300'000;
  const auto bytes = testing::random_elements(DType::float32, n, testing::Mix::ordinary, rng);
  const double once = scan_as_a_device(DType::float32, bytes.data(), n, rng).scan.sum_squares;
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(scan_as_a_device(DType::float32, bytes.data(), n, rng).scan.sum_squares, once);
}

}  // namespace
}  // namespace nanquest
