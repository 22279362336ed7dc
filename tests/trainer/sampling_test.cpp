// Drawing tokens: greedy, by temperature, by top-p, compared with shares computed by hand.
#include "trainer/text/sampling.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace nanquest::trainer {
namespace {

constexpr int kDraws = 20000;

/// How often each token is drawn.
std::vector<double> shares(const at::Tensor& logits, const SamplingOptions& options) {
  at::Generator generator = at::detail::createCPUGenerator(options.seed);
  std::vector<double> counts(static_cast<std::size_t>(logits.numel()));
  for (int i = 0; i < kDraws; ++i) {
    const Result<std::int64_t> token = draw(logits, options, generator);
    if (!token) return {};
    counts[static_cast<std::size_t>(*token)] += 1.0 / kDraws;
  }
  return counts;
}

/// Five standard deviations of a share of `kDraws`.
double scatter(double share) {
  return 5 * std::sqrt(share * (1 - share) / kDraws);
}

TEST(Sampling, GreedyTakesTheFirstOfTheLikeliest) {
  EXPECT_EQ(*draw(at::tensor({0.5, 2.0, 2.0, -1.0}), {}, {}), 1);
  EXPECT_EQ(*draw(at::tensor({-std::numeric_limits<double>::infinity(), -5.0}), {}, {}), 1);
}

// Logits of 0 and ln 3: at temperature 1 one to three, at 0.5 one to nine, at 2 one to the root of three.
TEST(Sampling, TemperatureDividesTheLogits) {
  const at::Tensor logits = at::tensor({0.0, std::log(3.0)});
  for (const double temperature : {0.5, 1.0, 2.0}) {
    const double odds = std::pow(3.0, 1 / temperature), expected = odds / (1 + odds);
    const std::vector<double> found = shares(logits, {.temperature = temperature});
    ASSERT_EQ(found.size(), 2u);
    EXPECT_NEAR(found[1], expected, scatter(expected)) << temperature;
  }
}

// Shares of 0.4, 0.3, 0.2 and 0.1: 0.65 is reached by the first two, 0.75 by the first three, 0.4 by the
// first.
TEST(Sampling, TopPKeepsTheFewestThatReachIt) {
  const at::Tensor logits = at::tensor({0.1, 0.4, 0.2, 0.3}).log();
  const auto at_p = [&](double p) { return shares(logits, {.temperature = 1, .top_p = p}); };
  EXPECT_NEAR(at_p(0.35)[1], 1, 1e-9) << "the likeliest always may come";
  const std::vector<double> two = at_p(0.65), three = at_p(0.75);
  EXPECT_EQ(two[0] + two[2], 0);
  EXPECT_NEAR(two[1], 4.0 / 7, scatter(4.0 / 7));
  EXPECT_EQ(three[0], 0);
  EXPECT_NEAR(three[2], 2.0 / 9, scatter(2.0 / 9));
  EXPECT_NEAR(at_p(1)[0], 0.1, scatter(0.1));
}

TEST(Sampling, WhatIsNoNumberIsRefused) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(draw(at::tensor({0.0, bad}), {}, {}).error().code, ErrorCode::bad_file);
  EXPECT_FALSE(draw(at::full({3}, -std::numeric_limits<double>::infinity()), {.temperature = 1}, {}));
}

// Each next token is the last one plus one.
TEST(Sampling, GoesOnToAnEndOrTheLimit) {
  const NextLogits next = [](const at::Tensor& tokens) {
    at::Tensor logits = at::zeros({10});
    logits[(tokens[0][-1].item<std::int64_t>() + 1) % 10] = 5;
    return logits;
  };
  const auto go = [&](std::int64_t most, std::int64_t longest) {
    return *go_on({1, 2}, next, {7}, longest, {.most = most});
  };
  using Tokens = std::vector<std::int64_t>;
  EXPECT_EQ(go(3, 100), (Tokens{3, 4, 5}));
  EXPECT_EQ(go(100, 100), (Tokens{3, 4, 5, 6, 7})) << "the end is part of it";
  EXPECT_EQ(go(100, 4), (Tokens{3, 4})) << "no longer than the model bears";
}

}  // namespace
}  // namespace nanquest::trainer
