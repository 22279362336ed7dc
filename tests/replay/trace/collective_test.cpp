// What a collective gives, against sums by hand and in every order.
#include "replay/trace/collective.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

namespace nanquest::trace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

at::Tensor numbers(const std::vector<double>& values, at::ScalarType type = at::kFloat) {
  return at::tensor(values, at::kDouble).to(type);
}

CollectiveCall call(Pattern pattern, Reduction reduction = Reduction::none) {
  CollectiveCall made;
  made.pattern = pattern;
  made.reduction = reduction;
  made.inputs.resize(1);
  return made;
}

Matched matched(const CollectiveCall& made, const std::vector<at::Tensor>& given, std::size_t place,
                const at::Tensor& recorded) {
  std::vector<Given> all;
  for (const at::Tensor& one : given) all.push_back({one});
  return hold_against(collective_result(made, all, place), {recorded});
}

TEST(Collective, GathersScattersAndBroadcasts) {
  const at::Tensor a = numbers({1, 2}), b = numbers({3, 4});
  EXPECT_EQ(matched(call(Pattern::gather), {a, b}, 0, numbers({1, 2, 3, 4})).match, Match::exact);
  const Matched swapped = matched(call(Pattern::gather), {a, b}, 0, numbers({1, 2, 4, 3}));
  EXPECT_EQ(swapped.match, Match::differs);
  EXPECT_EQ(swapped.first, 2);
  EXPECT_EQ(swapped.different, 2);
  EXPECT_EQ(swapped.recorded, 4);
  EXPECT_EQ(swapped.computed, 3);
  const CollectiveCall scatter = call(Pattern::reduce_scatter, Reduction::sum);
  EXPECT_EQ(matched(scatter, {a, b}, 0, numbers({4})).match, Match::exact);
  EXPECT_EQ(matched(scatter, {a, b}, 1, numbers({6})).match, Match::exact);
  EXPECT_EQ(matched(scatter, {a, b}, 1, numbers({4})).match, Match::differs);
  CollectiveCall from = call(Pattern::broadcast);
  from.root = 1;
  EXPECT_EQ(matched(from, {{}, b}, 0, b).match, Match::exact);  // only the root's is needed
  EXPECT_THROW(matched(from, {a, {}}, 0, b), std::runtime_error);
  EXPECT_THROW(matched(call(Pattern::gather), {a, numbers({1})}, 0, a), std::runtime_error);
  EXPECT_THROW(matched(call(Pattern::reduce, Reduction::unknown), {a, b}, 0, a), std::runtime_error);
}

TEST(Collective, TwoAddUpToOneResultWhateverTheFormat) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor a = numbers({0.1, 1e4, 3}, type), b = numbers({0.7, 3, -1e-3}, type);
    const CollectiveCall sum = call(Pattern::reduce, Reduction::sum);
    EXPECT_EQ(matched(sum, {a, b}, 0, at::add(b, a)).match, Match::exact);
    at::Tensor bent = at::add(a, b);
    bent.view(type == at::kDouble ? at::kLong : type == at::kFloat ? at::kInt : at::kShort)[1] += 1;
    EXPECT_EQ(matched(sum, {a, b}, 0, bent).first, 1);
  }
}

TEST(Collective, MoreAddUpInAnyOrder) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    std::vector<at::Tensor> given;
    for (int rank = 0; rank < 5; ++rank) {
      std::vector<double> values;
      for (int i = 0; i < 64; ++i)
        values.push_back((i % 2 ? 1 : -1) * (0.1 + 1.7 * rank) * (i + 1) / (rank + 3));
      given.push_back(numbers(values, type));
    }
    const CollectiveCall sum = call(Pattern::reduce, Reduction::sum);
    std::vector<std::size_t> order = {0, 1, 2, 3, 4};
    at::Tensor result;
    do {
      result = given[order[0]];
      for (std::size_t i = 1; i < order.size(); ++i) result = at::add(result, given[order[i]]);
      ASSERT_NE(matched(sum, given, 0, result).match, Match::differs);
    } while (std::next_permutation(order.begin(), order.end()));
    // One rank left out, or one element off by far more than roundings.
    EXPECT_EQ(matched(sum, given, 0, at::sub(result, given[2])).match, Match::differs);
    result = result.clone();
    result[7] = result[7] * 1.5;
    const Matched off = matched(sum, given, 0, result);
    EXPECT_EQ(off.first, 7);
    EXPECT_EQ(off.different, 1);
  }
}

TEST(Collective, InfinitiesAndNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const CollectiveCall sum = call(Pattern::reduce, Reduction::sum);
  const std::vector<at::Tensor> bad = {numbers({nan, kInf, 1}), numbers({1, 1, 1}), numbers({1, -kInf, 1})};
  EXPECT_EQ(matched(sum, bad, 0, numbers({nan, nan, 3})).match, Match::exact);
  EXPECT_EQ(matched(sum, bad, 0, numbers({2, nan, 3})).first, 0);
  EXPECT_EQ(matched(sum, bad, 0, numbers({nan, 0, 3})).first, 1);
  // On the way from 3e38 + 3e38 - 3e38 some order leaves the range, which 1 + 1 - 1 can't.
  const std::vector<at::Tensor> large = {numbers({3e38, 1}), numbers({3e38, 1}), numbers({-3e38, -1})};
  EXPECT_NE(matched(sum, large, 0, numbers({kInf, 1})).match, Match::differs);
  EXPECT_NE(matched(sum, large, 0, numbers({3e38, 1})).match, Match::differs);
  EXPECT_EQ(matched(sum, large, 0, numbers({3e38, kInf})).first, 1);
  // Beside a NaN a max may give either.
  const CollectiveCall max = call(Pattern::reduce, Reduction::max);
  const std::vector<at::Tensor> some = {numbers({nan, 1}), numbers({2, 5})};
  EXPECT_NE(matched(max, some, 0, numbers({2, 5})).match, Match::differs);
  EXPECT_NE(matched(max, some, 0, numbers({nan, 5})).match, Match::differs);
  EXPECT_EQ(matched(max, some, 0, numbers({2, 1})).first, 1);
}

TEST(Collective, IntegersAndAverages) {
  const std::vector<at::Tensor> whole = {numbers({1, 6}, at::kLong), numbers({2, 5}, at::kLong),
                                         numbers({4, 3}, at::kLong)};
  EXPECT_EQ(matched(call(Pattern::reduce, Reduction::sum), whole, 0, numbers({7, 14}, at::kLong)).match,
            Match::exact);
  EXPECT_EQ(matched(call(Pattern::reduce, Reduction::bxor), whole, 0, numbers({7, 0}, at::kLong)).match,
            Match::exact);
  EXPECT_EQ(matched(call(Pattern::reduce, Reduction::min), whole, 0, numbers({1, 3}, at::kLong)).match,
            Match::exact);
  EXPECT_EQ(matched(call(Pattern::reduce, Reduction::sum), whole, 0, numbers({7, 15}, at::kLong)).first, 1);
  const std::vector<at::Tensor> two = {numbers({0.1, 3}), numbers({0.3, 4})};
  const CollectiveCall average = call(Pattern::reduce, Reduction::average);
  EXPECT_NE(matched(average, two, 0, at::div(at::add(two[0], two[1]), 2)).match, Match::differs);
  EXPECT_NE(matched(average, two, 0, at::add(at::div(two[0], 2), at::div(two[1], 2))).match, Match::differs);
  EXPECT_EQ(matched(average, two, 0, at::add(two[0], two[1])).match, Match::differs);
}

}  // namespace
}  // namespace nanquest::trace
