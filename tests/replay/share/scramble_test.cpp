// What scrambling must change, and what it must leave.
#include "replay/share/scramble.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "probe/numerics/format.h"

namespace nanquest {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TensorData floats(Format format, DType dtype, const std::vector<double>& values,
                  std::vector<std::int64_t> shape) {
  TensorData t{dtype, std::move(shape), {}};
  t.bytes.resize(values.size() * dtype_size(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = encode(format, values[i]);
    std::memcpy(t.bytes.data() + i * dtype_size(dtype), &bits, dtype_size(dtype));
  }
  return t;
}

std::vector<double> values_of(Format format, const TensorData& t) {
  std::vector<double> values;
  for (std::size_t i = 0; i < t.bytes.size(); i += dtype_size(t.dtype)) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, t.bytes.data() + i, dtype_size(t.dtype));
    values.push_back(decode(format, bits));
  }
  return values;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double v : values)
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  return most;
}

TEST(Scramble, FloatsKeepWhatMattersAndNothingElse) {
  const std::pair<Format, DType> formats[] = {
      {Format::fp64, DType::float64},           {Format::fp32, DType::float32},
      {Format::fp16, DType::float16},           {Format::bf16, DType::bfloat16},
      {Format::fp8_e4m3, DType::float8_e4m3fn}, {Format::fp8_e5m2, DType::float8_e5m2}};
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (const auto& [format, dtype] : formats) {
    std::vector<double> drawn(64 * 32);
    for (double& v : drawn) v = normal(random);
    drawn[5] = drawn[900] = 0;
    drawn[17] = std::nan("");
    if (info(format).has_infinity) drawn[40] = kInf, drawn[41] = -kInf;
    TensorData t = floats(format, dtype, drawn, {64, 32});
    const std::vector<double> before = values_of(format, t);
    Scrambler().scramble(t);
    const std::vector<double> after = values_of(format, t);
    ASSERT_EQ(before.size(), after.size());
    std::size_t same = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(std::isnan(before[i]), std::isnan(after[i])) << i;
      EXPECT_EQ(std::isinf(before[i]) ? before[i] : 0, std::isinf(after[i]) ? after[i] : 0) << i;
      EXPECT_EQ(before[i] == 0, after[i] == 0) << i;
      same += std::isfinite(before[i]) && before[i] != 0 && before[i] == after[i];
    }
    EXPECT_LE(largest(after), largest(before)) << info(format).name;
    EXPECT_GT(largest(after), largest(before) * 15 / 16) << info(format).name;
    // By chance: a value of few digits may be drawn again in its own place.
    EXPECT_LT(static_cast<double>(same), 0.2 * static_cast<double>(before.size())) << info(format).name;
    if (info(format).mantissa_bits >= 23) {
      EXPECT_LE(same, 1u) << "the largest may have no more digits";
    }
  }
}

TEST(Scramble, ATensorOfOnesIsNoneAfterwardsAndNoLarger) {
  TensorData t = floats(Format::fp32, DType::float32, std::vector<double>(100, 1.0), {100});
  Scrambler().scramble(t);
  const std::vector<double> after = values_of(Format::fp32, t);
  EXPECT_EQ(largest(after), 1.0);
  EXPECT_EQ(std::count(after.begin(), after.end(), 1.0), 1);
}

TensorData integers(const std::vector<std::int64_t>& values, std::vector<std::int64_t> shape) {
  TensorData t{DType::int64, std::move(shape), {}};
  t.bytes.resize(values.size() * sizeof(std::int64_t));
  std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}

std::vector<std::int64_t> values_of(const TensorData& t) {
  std::vector<std::int64_t> values(t.bytes.size() / sizeof(std::int64_t));
  std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
  return values;
}

TEST(Scramble, TokensAreMappedOneToOneWithinTheVocabulary) {
  constexpr std::int64_t kVocabulary = 1000;
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < 600; ++i) tokens.push_back(i * 7 % 990);
  tokens[3] = -100;
  tokens[4] = 5000;  // beyond the vocabulary: what went wrong may be just that
  TensorData t = integers(tokens, {600}), again = integers({7, 14}, {2});
  Scrambler scrambler;
  scrambler.scramble(t, kVocabulary);
  scrambler.scramble(again, kVocabulary);
  const std::vector<std::int64_t> after = values_of(t);
  EXPECT_EQ(std::count(after.begin(), after.end(), -100), 1);
  EXPECT_EQ(std::count_if(after.begin(), after.end(), [](auto v) { return v >= kVocabulary; }), 1);
  EXPECT_EQ(std::set<std::int64_t>(after.begin(), after.end()).size(),
            std::set<std::int64_t>(tokens.begin(), tokens.end()).size());
  EXPECT_TRUE(
      std::all_of(after.begin(), after.end(), [](auto v) { return v == -100 || (v >= 0 && v <= 5000); }));
  EXPECT_NE(after, tokens);
  for (const std::int64_t v : values_of(again))
    EXPECT_NE(std::find(after.begin(), after.end(), v), after.end());
}

TEST(Scramble, AFullyMaskedRowStaysOne) {
  TensorData t{DType::boolean, {2, 3, 4}, {}};
  for (int i = 0; i < 24; ++i) t.bytes.push_back(static_cast<std::byte>(i >= 8 && i < 12 ? 0 : i % 4 < 2));
  Scrambler().scramble(t);
  for (std::size_t row = 0; row < 6; ++row) {
    const auto first = t.bytes.begin() + static_cast<std::ptrdiff_t>(4 * row);
    EXPECT_EQ(std::count(first, first + 4, std::byte{1}), row == 2 ? 0 : 2) << row;
  }
}

TEST(Scramble, EmptyAndSingleValuesAreNoTrouble) {
  TensorData empty{DType::int64, {0, 3}, {}};
  Scrambler().scramble(empty, 10);
  EXPECT_TRUE(empty.bytes.empty());
  TensorData one = floats(Format::fp32, DType::float32, {100}, {});
  Scrambler().scramble(one);
  EXPECT_GT(values_of(Format::fp32, one)[0], 90);
}

}  // namespace
}  // namespace nanquest
