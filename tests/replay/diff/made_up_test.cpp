// How ranks' values make up the value of one; and how much each counts.
#include "replay/diff/made_up.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "replay/diff/shares.h"

namespace nanquest::diff {
namespace {

at::Tensor numbers(at::IntArrayRef sizes, int seed) {
  at::manual_seed(seed);
  return at::randn(sizes);
}

MadeUp how(const at::Tensor& whole, const std::vector<at::Tensor>& parts,
           const Ways& ways = {true, false, 0}) {
  return made_up(whole, parts, ways, [](const Apart& found) { return found.whole < 1e-5 && !found.kind; })
      .how;
}

TEST(MadeUp, EachWayAndNoOther) {
  const at::Tensor whole = numbers({4, 6}, 1), other = numbers({4, 6}, 2);
  EXPECT_EQ(how(whole, {whole, whole}), MadeUp::copies);
  EXPECT_EQ(how(whole, {whole, other}), MadeUp::nothing);
  EXPECT_EQ(how(whole, {whole - other, other}), MadeUp::sum);
  EXPECT_EQ(how(whole, {whole - other, other}, {}), MadeUp::nothing);
  EXPECT_EQ(how(whole, {whole * 2 - other, other}), MadeUp::nothing);
  EXPECT_EQ(how(whole, {whole * 2 - other, other}, {true, true, 0}), MadeUp::sum);
  EXPECT_EQ(how(whole, {whole.narrow(0, 0, 3), whole.narrow(0, 3, 1)}), MadeUp::along);
  EXPECT_EQ(how(whole, {whole.narrow(1, 0, 3), whole.narrow(1, 3, 3)}), MadeUp::along);
  EXPECT_EQ(how(whole, {whole.narrow(1, 3, 3), whole.narrow(1, 0, 3)}), MadeUp::nothing);
  EXPECT_EQ(how(whole, {whole.narrow(1, 0, 3), whole.narrow(1, 3, 2)}), MadeUp::other_shapes);
  EXPECT_EQ(how(whole, {whole, at::Tensor()}), MadeUp::other_shapes);
  // Two samples of one row each, drawn in turn.
  const std::vector<at::Tensor> in_turn{whole.slice(0, 0, 4, 2), whole.slice(0, 1, 4, 2)};
  EXPECT_EQ(how(whole, in_turn, {true, false, 2}), MadeUp::in_turn);
  EXPECT_EQ(how(whole, in_turn, {true, false, 1}), MadeUp::nothing);
  EXPECT_EQ(how(whole.norm(), {whole.narrow(0, 0, 1).norm(), whole.narrow(0, 1, 3).norm()}), MadeUp::norm);
  const at::Tensor tokens = at::arange(8);
  EXPECT_EQ(how(tokens, {tokens.slice(0, 0, 4), tokens.slice(0, 4, 8)}), MadeUp::along);
  EXPECT_EQ(how(tokens * 2, {tokens, tokens}), MadeUp::nothing);  // numbers of samples are not added
}

TEST(Shares, OfTwoRanks) {
  Shares shares(2), none(2);
  for (int weight = 0; weight < 3; ++weight) {
    const at::Tensor first = numbers({5, 3}, weight), second = numbers({5, 3}, weight + 10);
    shares.add(first * 0.25 + second * 0.75, {first, second});
    none.add(numbers({5, 3}, weight + 20), {first, second});
  }
  const Shares::Fitted found = shares.fit();
  ASSERT_EQ(found.of_rank.size(), 2U);
  EXPECT_NEAR(found.of_rank[0], 0.25, 1e-6);
  EXPECT_NEAR(found.of_rank[1], 0.75, 1e-6);
  EXPECT_LT(found.apart, 1e-6);
  EXPECT_GT(none.fit().apart, 0.1);
  EXPECT_EQ(shares.weights(), 3);
}

}  // namespace
}  // namespace nanquest::diff
