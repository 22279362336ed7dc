// EMPTY_REDUCTION: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::leaf;
using testing::trained;

TEST(EmptyReduction, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("empty_reduction", {.cause = Label::empty_reduction,
                                             .phase = Phase::forward,
                                             .op = "aten::mean",
                                             .module = "aux",
                                             .precision = PrecisionVerdict::structural});
}

TEST(EmptyReduction, MeanOverADimensionInHalf) {
  const at::Tensor w = leaf(at::randn({3, 4}));
  expect_healed(
      trained(w, [&] { return w.to(at::kHalf).narrow(1, 0, 0).mean(1).to(at::kFloat).sum() + w.sum(); }),
      Label::empty_reduction, "aten::mean");
}

TEST(EmptyReduction, DeviationAndVarianceOfOneElement) {
  const at::Tensor w = leaf(at::randn({3, 1}));
  expect_healed(trained(w, [&] { return w.std(1).sum() + w.sum(); }), Label::empty_reduction, "aten::std");
  expect_healed(trained(w, [&] { return w.var(1).sum() + w.sum(); }), Label::empty_reduction, "aten::var");
}

TEST(EmptyReduction, ClassLossWithEveryTargetIgnored) {
  const at::Tensor w = leaf(at::randn({3, 4}));
  const at::Tensor target = at::full({3}, -100, at::kLong);
  expect_healed(trained(w, [&] { return at::cross_entropy_loss(w, target); }), Label::empty_reduction,
                "aten::nll_loss_forward");
}

TEST(EmptyReduction, ClassLossWithOnlyWeightsOfZero) {
  const at::Tensor w = leaf(at::randn({3, 4}));
  const at::Tensor target = at::ones({3}, at::kLong), weight = at::tensor({1.f, 0.f, 1.f, 1.f});
  expect_healed(trained(w, [&] { return at::cross_entropy_loss(w, target, weight); }), Label::empty_reduction,
                "aten::nll_loss_forward");
}

TEST(EmptyReduction, SquaredErrorOfNothing) {
  const at::Tensor w = leaf(at::randn({3}));
  expect_healed(trained(w, [&] { return at::mse_loss(w.narrow(0, 0, 0), at::zeros({0})) + w.sum(); }),
                Label::empty_reduction, "aten::mse_loss");
}

TEST(EmptyReduction, ASegmentWithoutElements) {
  for (const at::Tensor& w : {leaf(at::randn({5, 2})), leaf(at::randn({5}))}) {
    const auto mean_of = [&](const at::Tensor& lengths) {
      return at::segment_reduce(w, "mean", lengths, {}, {}, 0, false, std::nullopt).pow(2).sum();
    };
    expect_healed(trained(w,
                          [&] {
                            return mean_of(at::tensor({3, 0, 2}, at::kLong));
                          }),
                  Label::empty_reduction, "aten::segment_reduce");
  }
}

TEST(EmptyReduction, ASumOverACountOfZeroIsDivZero) {
  const at::Tensor w = leaf(at::randn({3})), mask = at::zeros({3});
  expect_cause(trained(w, [&] { return (w * mask).sum() / mask.sum(); }), Label::div_zero);
}

TEST(EmptyReduction, AMeanThatOverflowsIsRangeOverflow) {
  const at::Tensor w = leaf(at::full({4}, 3e38f, at::kFloat));
  EXPECT_NE(trained(w, [&] { return w.sum(); }).finding().label, Label::empty_reduction);
}

TEST(EmptyReduction, DeviationOfEqualElementsIsNot) {
  const at::Tensor w = leaf(at::ones({3, 4}));
  EXPECT_NE(trained(w, [&] { return (w / w.std(1, true)).sum(); }).finding().label, Label::empty_reduction);
}

}  // namespace
}  // namespace nanquest
