#include "probe/numerics/scan.h"

#include <gtest/gtest.h>

#include "probe/numerics/float_scan.h"
#include "tests/numerics/naive_scan.h"
#include "tests/numerics/random_bits.h"

namespace nanquest {
namespace {

using testing::kMixes;
using testing::Mix;
using testing::naive_scan;
using testing::random_elements;
using testing::sum_tolerance;

constexpr DType kFloats[] = {DType::float64,  DType::float32,       DType::float16,
                             DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2};

void check_against_naive(DType type, const void* data, std::size_t n) {
  ExponentHistogram got_bins{}, want_bins{};
  const ScanResult want = naive_scan(type, data, n, &want_bins);
  EXPECT_SAME_SCAN(scan(type, data, n), want, sum_tolerance(type));
  EXPECT_SAME_SCAN(scan(type, data, n, &got_bins), want, sum_tolerance(type));
  EXPECT_EQ(got_bins, want_bins);
  EXPECT_EQ(any_non_finite(type, data, n), want.non_finite() != 0);
}

TEST(Scan, EverySizeOf0To300OfEveryMixAgreesWithTheNaiveScan) {
  std::mt19937_64 rng(1);
  for (const DType type : kFloats)
    for (const Mix mix : kMixes)
      for (std::size_t n = 0; n <= 300; ++n) {
        SCOPED_TRACE(std::string(dtype_name(type)) + " n " + std::to_string(n));
        const auto data = random_elements(type, n, mix, rng);
        check_against_naive(type, data.data(), n);
        if (::testing::Test::HasFailure()) return;
      }
}

TEST(Scan, EveryAlignmentAgreesWithTheNaiveScan) {
  std::mt19937_64 rng(2);
  for (const DType type : kFloats)
    for (std::size_t shift = 0; shift < 64; ++shift) {
      SCOPED_TRACE(std::string(dtype_name(type)) + " shift " + std::to_string(shift));
      const auto data = random_elements(type, 261, kMixes[shift % 5], rng);
      std::vector<unsigned char> room(data.size() + 64);
      std::copy(data.begin(), data.end(), room.begin() + static_cast<std::ptrdiff_t>(shift));
      check_against_naive(type, room.data() + shift, 261);
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(Scan, SeveralBlocksAgreeWithTheNaiveScan) {
  std::mt19937_64 rng(3);
  for (const DType type : kFloats)
    for (const Mix mix : kMixes)
      for (const std::size_t n : {1023u, 1024u, 4096u, 8191u, 40013u}) {
        SCOPED_TRACE(std::string(dtype_name(type)) + " n " + std::to_string(n));
        const auto data = random_elements(type, n, mix, rng);
        check_against_naive(type, data.data(), n);
        if (::testing::Test::HasFailure()) return;
      }
}

TEST(Scan, EveryTableOfKernelsGivesTheSameBits) {
  std::mt19937_64 rng(4);
  for (const DType type : {DType::float64, DType::float32, DType::float16, DType::bfloat16})
    for (const Mix mix : kMixes)
      for (const std::size_t n : {1u, 31u, 100u, 4097u, 8193u, 20001u}) {
        const auto data = random_elements(type, n, mix, rng);
        const ScanResult base = detail::scan_float(detail::kBase, type, data.data(), n, nullptr);
        for (const detail::Implementation* with : detail::implementations()) {
          SCOPED_TRACE(std::string(with->name) + " " + std::string(dtype_name(type)) + " n " +
                       std::to_string(n));
          EXPECT_SAME_SCAN(detail::scan_float(*with, type, data.data(), n, nullptr), base, 0);
          EXPECT_EQ(detail::any_non_finite(*with, type, data.data(), n), base.non_finite() != 0);
        }
      }
}

// The counters of a block are as narrow as its elements: in full blocks of one kind they are largest.
TEST(Scan, WholeBlocksOfOneKindAreCountedByEveryTable) {
  for (const DType type : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
    const Format format = *format_of(type);
    const std::size_t size = dtype_size(type), n = 3 * detail::kScanBlock / size + 5;
    for (const double x :
         {0.0, -0.0, info(format).min_subnormal, info(format).min_normal, info(format).max_finite,
          static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
      std::vector<unsigned char> data(n * size);
      const std::uint64_t bits = encode(format, x);
      for (std::size_t i = 0; i < n; ++i) std::memcpy(data.data() + i * size, &bits, size);
      const ScanResult want = naive_scan(type, data.data(), n);
      for (const detail::Implementation* with : detail::implementations()) {
        SCOPED_TRACE(std::string(with->name) + " " + std::string(dtype_name(type)) + " " + std::to_string(x));
        EXPECT_SAME_SCAN(detail::scan_float(*with, type, data.data(), n, nullptr), want, sum_tolerance(type));
      }
    }
  }
}

// Half zeros, as after a ReLU, and magnitudes over the whole format: sums lose bits most easily.
TEST(Scan, SumOfSquaresHoldsOverTheWholeRangeOfEveryTable) {
  std::mt19937_64 rng(9);
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16}) {
    const Format format = *format_of(type);
    const int low = std::ilogb(info(format).min_subnormal), high = std::ilogb(info(format).max_finite);
    for (int top = low + 1; top <= high; top += 3) {
      std::vector<unsigned char> data(17000 * dtype_size(type));
      const int span = 1 + static_cast<int>(rng() % 40);
      for (std::size_t i = 0; i < 17000; ++i) {
        const double m = 1 + static_cast<double>(rng() >> 11) * 0x1p-53;
        const int e = std::max(low, top - static_cast<int>(rng() % static_cast<unsigned>(span)));
        const std::uint64_t bits = encode(format, rng() % 2 ? 0.0 : std::ldexp(m, e));
        std::memcpy(data.data() + i * dtype_size(type), &bits, dtype_size(type));
      }
      const ScanResult want = naive_scan(type, data.data(), 17000);
      for (const detail::Implementation* with : detail::implementations()) {
        SCOPED_TRACE(std::string(with->name) + " " + std::string(dtype_name(type)) + " 2^" +
                     std::to_string(top));
        EXPECT_SAME_SCAN(detail::scan_float(*with, type, data.data(), 17000, nullptr), want,
                         sum_tolerance(type));
      }
    }
  }
}

// Alternating blocks with and without zeros take every path from one kind of block to the next.
TEST(Scan, BlocksOfChangingKindsAgreeWithTheNaiveScan) {
  std::mt19937_64 rng(11);
  for (const DType type : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
    std::vector<unsigned char> data;
    for (int block = 0; block < 40; ++block) {
      const auto piece = random_elements(type, detail::kScanBlock / dtype_size(type), kMixes[rng() % 7], rng);
      data.insert(data.end(), piece.begin(), piece.end());
      const auto normal = random_elements(type, detail::kScanBlock / dtype_size(type), Mix::ordinary, rng);
      if (block % 3 == 0) data.insert(data.end(), normal.begin(), normal.end());
    }
    SCOPED_TRACE(dtype_name(type));
    check_against_naive(type, data.data(), data.size() / dtype_size(type));
  }
}

TEST(Scan, WithHashEqualsTheTwoCalls) {
  std::mt19937_64 rng(10);
  for (const DType type : {DType::float64, DType::float32, DType::float16, DType::bfloat16, DType::complex64,
                           DType::float8_e5m2, DType::int32})
    for (const std::size_t bytes : {0u, 8u, 1024u, 8184u, 8192u, 8200u, 65536u, 100008u}) {
      auto data = random_elements(DType::float32, bytes / 4, Mix::hostile, rng);
      const std::size_t n = bytes / dtype_size(type);
      SCOPED_TRACE(std::string(dtype_name(type)) + " bytes " + std::to_string(bytes));
      ExponentHistogram want_bins{}, got_bins{};
      const ScanResult want = scan(type, data.data(), n, &want_bins);
      const ScanAndHash got = scan_and_hash(type, data.data(), n, &got_bins);
      EXPECT_SAME_SCAN(got.scan, want, dtype_size(type) == 1 ? 1e-13 : 0.0);
      EXPECT_EQ(got_bins, want_bins);
      EXPECT_EQ(got.hash, hash_bytes(data.data(), bytes));
    }
}

TEST(Scan, FindsTheOnlyBadElementWhereverItIs) {
  for (const DType type : kFloats) {
    const std::size_t n = 9000, size = dtype_size(type);
    std::vector<unsigned char> data(n * size);
    const std::uint64_t nan = encode(*format_of(type), NAN);
    for (std::size_t at = 0; at < n; at += 97) {
      std::memcpy(data.data() + at * size, &nan, size);
      EXPECT_EQ(scan(type, data.data(), n).first_bad, static_cast<std::int64_t>(at));
      EXPECT_EQ(scan(type, data.data(), n).nan, 1u);
      EXPECT_TRUE(any_non_finite(type, data.data(), n));
      std::memset(data.data() + at * size, 0, size);
    }
    EXPECT_FALSE(any_non_finite(type, data.data(), n));
  }
}

TEST(Scan, SumOfSquaresHoldsOverTheWholeRangeOfBf16) {
  std::mt19937_64 rng(5);
  for (int exponent = -132; exponent <= 120; exponent += 4) {
    std::vector<std::uint16_t> data(5000);
    for (auto& x : data)
      x = static_cast<std::uint16_t>(encode(
          Format::bf16,
          std::ldexp(1.0 + static_cast<double>(rng() % 128) / 128, exponent - static_cast<int>(rng() % 30))));
    SCOPED_TRACE(exponent);
    EXPECT_SAME_SCAN(scan(DType::bfloat16, data.data(), data.size()),
                     naive_scan(DType::bfloat16, data.data(), data.size()), 0x1p-30);
  }
}

TEST(Scan, MergeOfPartsIsTheWhole) {
  std::mt19937_64 rng(6);
  for (const DType type : kFloats)
    for (const Mix mix : kMixes) {
      const auto data = random_elements(type, 3000, mix, rng);
      const ScanResult whole = scan(type, data.data(), 3000);
      for (const std::size_t cut : {0u, 1u, 700u, 2999u, 3000u}) {
        ScanResult parts = scan(type, data.data(), cut);
        parts.merge(scan(type, data.data() + cut * dtype_size(type), 3000 - cut));
        EXPECT_SAME_SCAN(parts, whole, 2 * sum_tolerance(type));
      }
    }
}

TEST(Scan, IntegersCountZerosAndAmax) {
  const std::int64_t wide[] = {0, -5, 3, INT64_MIN};
  ScanResult r = scan(DType::int64, wide, 4);
  EXPECT_EQ(r.count, 4u);
  EXPECT_EQ(r.zero, 1u);
  EXPECT_EQ(r.amax, 0x1p63);
  EXPECT_EQ(r.first_bad, -1);
  EXPECT_EQ(r.sum_squares, 0);
  const std::int8_t small[] = {-128, 127, 0, 0};
  EXPECT_EQ(scan(DType::int8, small, 4).amax, 128);
  EXPECT_EQ(scan(DType::int8, small, 4).zero, 2u);
  EXPECT_EQ(scan(DType::uint8, small, 1).amax, 128);
  const std::uint64_t big[] = {UINT64_MAX, 0};
  EXPECT_EQ(scan(DType::uint64, big, 2).amax, 0x1p64);
  const std::int32_t middle[] = {-7, 6};
  EXPECT_EQ(scan(DType::int32, middle, 2).amax, 7);
  const std::uint32_t unsigned_middle[] = {UINT32_MAX};
  EXPECT_EQ(scan(DType::uint32, unsigned_middle, 1).amax, 4294967295.0);
  const std::int16_t shorts[] = {-300, 299};
  EXPECT_EQ(scan(DType::int16, shorts, 2).amax, 300);
  const std::uint16_t unsigned_shorts[] = {65535};
  EXPECT_EQ(scan(DType::uint16, unsigned_shorts, 1).amax, 65535);
  const std::uint8_t flags[] = {1, 0, 255};
  EXPECT_EQ(scan(DType::boolean, flags, 3).amax, 1);
  EXPECT_EQ(scan(DType::boolean, flags, 3).zero, 1u);
  EXPECT_FALSE(any_non_finite(DType::int64, wide, 4));
}

TEST(Scan, ComplexNumbersAreScannedAsPairs) {
  const float z[] = {3, 4, 0, NAN, -8, INFINITY};
  const ScanResult r = scan(DType::complex64, z, 3);
  EXPECT_EQ(r.count, 6u);
  EXPECT_EQ(r.nan, 1u);
  EXPECT_EQ(r.pos_inf, 1u);
  EXPECT_EQ(r.first_bad, 3);
  EXPECT_EQ(r.amax, 8);
  EXPECT_EQ(r.sum_squares, 9 + 16 + 64);
  EXPECT_TRUE(any_non_finite(DType::complex64, z, 3));
  EXPECT_FALSE(any_non_finite(DType::complex64, z, 1));
  const double w[] = {1, -2};
  EXPECT_EQ(scan(DType::complex128, w, 1).count, 2u);
  EXPECT_EQ(scan(DType::complex128, w, 1).amin_nonzero, 1);
}

}  // namespace
}  // namespace nanquest
