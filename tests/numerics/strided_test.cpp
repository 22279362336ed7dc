#include <gtest/gtest.h>

#include <numeric>

#include "probe/numerics/scan.h"
#include "tests/numerics/naive_scan.h"
#include "tests/numerics/random_bits.h"

namespace nanquest {
namespace {

struct View {
  const char* name;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t offset;  // of the element with all indices 0
};

// All of them stay inside 120 000 elements.
const View kViews[] = {
    {"contiguous", {10, 30, 40}, {1200, 40, 1}, 0},
    {"scalar", {}, {}, 77},
    {"empty", {3, 0, 4}, {4, 4, 1}, 0},
    {"transposed", {40, 30, 10}, {1, 40, 1200}, 0},
    {"permuted middle", {10, 40, 30}, {1200, 1, 40}, 5},
    {"every second", {300, 200}, {400, 2}, 1},
    {"negative inner", {100, 100}, {1000, -1}, 99},
    {"negative outer", {100, 100}, {-1000, 1}, 99000},
    {"all negative", {6000}, {-3}, 17997},
    {"broadcast outer", {50, 200}, {0, 1}, 3},
    {"broadcast inner", {200, 50}, {1, 0}, 3},
    {"broadcast all", {37, 41}, {0, 0}, 9},
    {"overlapping", {500, 500}, {1, 1}, 0},
    {"size-one dimensions", {1, 300, 1, 40, 1}, {7, 41, 9999, 1, 3}, 2},
    {"joinable part", {20, 30, 40}, {2400, 40, 1}, 0},
    {"large and padded", {300, 390}, {400, 1}, 0},
    {"five dimensions", {3, 4, 5, 6, 7}, {1, 3, 2520, 84, 12}, 0},
};

std::vector<unsigned char> gather(std::size_t size, const std::vector<unsigned char>& data, const View& v) {
  std::vector<unsigned char> out;
  std::vector<std::int64_t> index(v.sizes.size(), 0);
  for (const std::int64_t s : v.sizes)
    if (s == 0) return out;
  for (;;) {
    const std::int64_t at = std::inner_product(index.begin(), index.end(), v.strides.begin(), v.offset);
    out.insert(out.end(), data.begin() + at * static_cast<std::int64_t>(size),
               data.begin() + (at + 1) * static_cast<std::int64_t>(size));
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == v.sizes[d - 1]) index[--d] = 0;
    if (d == 0) return out;
  }
}

TEST(Strided, ScanAndHashEqualThoseOfTheContiguousCopy) {
  std::mt19937_64 rng(7);
  for (const DType type :
       {DType::float64, DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn}) {
    const std::size_t size = dtype_size(type);
    for (const auto mix : {testing::Mix::ordinary, testing::Mix::hostile}) {
      const auto data = testing::random_elements(type, 120000, mix, rng);
      for (const View& v : kViews) {
        SCOPED_TRACE(std::string(dtype_name(type)) + " " + v.name);
        const auto copy = gather(size, data, v);
        const unsigned char* start = data.data() + v.offset * static_cast<std::int64_t>(size);
        ExponentHistogram want_bins{}, got_bins{}, both_bins{};
        const ScanResult want = testing::naive_scan(type, copy.data(), copy.size() / size, &want_bins);
        const double tolerance = 2 * testing::sum_tolerance(type);
        EXPECT_SAME_SCAN(scan_strided(type, start, v.sizes, v.strides, &got_bins), want, tolerance);
        EXPECT_EQ(got_bins, want_bins);
        EXPECT_EQ(hash_strided(size, start, v.sizes, v.strides), hash_contents(copy.data(), copy.size()));
        const ScanAndHash both = scan_and_hash_strided(type, start, v.sizes, v.strides, &both_bins);
        EXPECT_SAME_SCAN(both.scan, want, tolerance);
        EXPECT_EQ(both_bins, want_bins);
        EXPECT_EQ(both.hash, hash_contents(copy.data(), copy.size()));
      }
    }
  }
}

TEST(Strided, OddElementSizesHashLikeTheirCopy) {
  std::mt19937_64 rng(8);
  std::vector<unsigned char> data(200000);
  for (auto& byte : data) byte = static_cast<unsigned char>(rng());
  for (const std::size_t size : {3u, 7u, 16u, 100u, 1024u}) {
    const View v{"", {20, 9}, {9, -1}, 8};
    const auto copy = gather(size, data, v);
    EXPECT_EQ(hash_strided(size, data.data() + 8 * size, v.sizes, v.strides),
              hash_contents(copy.data(), copy.size()));
  }
}

TEST(Strided, ViewsOfSeveralPartsHashLikeTheirCopy) {
  std::mt19937_64 rng(9);
  const auto data = testing::random_elements(DType::float32, 1000 * 900, testing::Mix::ordinary, rng);
  const std::int64_t sizes[] = {900, 1000}, strides[] = {1, 900};
  std::vector<unsigned char> copy;
  for (std::size_t i = 0; i < 900; ++i)
    for (std::size_t j = 0; j < 1000; ++j) {
      const auto* element = data.data() + 4 * (j * 900 + i);
      copy.insert(copy.end(), element, element + 4);
    }
  const std::uint64_t contents = hash_contents(copy.data(), copy.size());
  EXPECT_EQ(hash_strided(4, data.data(), sizes, strides), contents);
  EXPECT_EQ(scan_and_hash_strided(DType::float32, data.data(), sizes, strides).hash, contents);
  EXPECT_EQ(hash_bytes_strided(4, data.data(), sizes, strides), hash_bytes(copy.data(), copy.size()));
  EXPECT_NE(contents, hash_bytes(copy.data(), copy.size()));
}

TEST(Strided, ComplexAndIntegersToo) {
  const float z[] = {1, 2, 3, NAN, 5, 6, 7, 8};
  const std::int64_t sizes[] = {2}, strides[] = {2};
  const ScanResult r = scan_strided(DType::complex64, z, sizes, strides);
  EXPECT_EQ(r.count, 4u);
  EXPECT_EQ(r.first_bad, -1);
  EXPECT_EQ(r.sum_squares, 1 + 4 + 25 + 36);
  const std::int64_t back[] = {-1};
  const ScanResult reversed = scan_strided(DType::complex64, z + 6, std::span(sizes), back);
  EXPECT_EQ(reversed.amax, 8);
  const std::int32_t n[] = {4, 0, -9, 0};
  EXPECT_EQ(scan_strided(DType::int32, n, sizes, strides).amax, 9);
  EXPECT_EQ(scan_strided(DType::int32, n, sizes, strides).zero, 0u);
}

}  // namespace
}  // namespace nanquest
