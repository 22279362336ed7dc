// MASK_OVERFLOW: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::leaf;
using testing::trained;

TEST(MaskOverflow, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("mask_overflow", {.cause = Label::mask_overflow,
                                           .phase = Phase::forward,
                                           .op = "aten::add",
                                           .module = "attention",
                                           .precision = PrecisionVerdict::curable,
                                           .poison = {2}});
}

at::Tensor softmax_sum(const at::Tensor& scores) {
  return at::softmax(scores.to(at::kFloat), 1).pow(2).sum();
}

TEST(MaskOverflow, FinfoMinAddedToANegativeScore) {
  const at::Tensor scores = leaf(at::full({2, 3}, -40.f));
  at::Tensor mask = at::zeros({2, 3}, at::kHalf);
  mask.select(0, 1).fill_(-65504.f);
  expect_healed(trained(scores, [&] { return softmax_sum(scores.to(at::kHalf) + mask); }),
                Label::mask_overflow, "aten::add");
}

TEST(MaskOverflow, OneMinusMaskTimesABillionInHalf) {
  const at::Tensor scores = leaf(at::randn({2, 3}));
  at::Tensor keep = at::ones({2, 3}, at::kHalf);
  keep.select(0, 1).zero_();
  expect_healed(trained(scores, [&] { return softmax_sum(scores.to(at::kHalf) + (1 - keep) * -1e9); }),
                Label::mask_overflow, "aten::mul");
}

TEST(MaskOverflow, OneMinusTheNumberOfAPackedSequence) {
  const at::Tensor scores = leaf(at::randn({2, 3}));
  const at::Tensor keep = at::tensor({1.f, 2.f, 3.f});  // no mask of 0 and 1: the third is +Inf
  expect_healed(
      trained(scores, [&] { return softmax_sum(scores + (1 - keep) * -std::numeric_limits<float>::max()); }),
      Label::mask_overflow, "aten::mul");
}

TEST(MaskOverflow, ARateTimesAHugeGradientIsNone) {
  const at::Tensor w = leaf(at::full({2, 3}, 7e34f));  // whole numbers, as all floats of this size are
  expect_cause(trained(w, [&] { return (w * 1e12).sum(); }), Label::fp16_overflow, "aten::mul");
}

TEST(MaskOverflow, CastToHalf) {
  const at::Tensor scores = leaf(at::randn({2, 3}));
  at::Tensor mask = at::zeros({2, 3});
  mask.select(0, 1).fill_(-1e9f);
  expect_healed(trained(scores, [&] { return softmax_sum(scores.to(at::kHalf) + mask.to(at::kHalf)); }),
                Label::mask_overflow, "aten::_to_copy");
}

TEST(MaskOverflow, InFp32AndInPlace) {
  const at::Tensor scores = leaf(at::full({2, 3}, -1e32f));
  at::Tensor mask = at::zeros({2, 3});
  mask.select(0, 1).fill_(-std::numeric_limits<float>::max());
  expect_cause(trained(scores, [&] { return softmax_sum((scores * 1).add_(mask)); }), Label::mask_overflow,
               "aten::add_");
}

TEST(MaskOverflow, MaskedInFp32AndCastToHalf) {
  const at::Tensor scores = leaf(at::randn({2, 3}));
  at::Tensor hidden = at::zeros({2, 3}, at::kBool);
  hidden.select(0, 1).fill_(true);
  expect_healed(trained(scores, [&] { return softmax_sum(scores.masked_fill(hidden, -1e9).to(at::kHalf)); }),
                Label::mask_overflow, "aten::_to_copy");
}

TEST(MaskOverflow, ScaledAfterwardsAndInABatchedProduct) {
  const at::Tensor scores = leaf(at::randn({2, 3}));
  at::Tensor mask = at::zeros({2, 3}, at::kHalf);
  mask.select(0, 1).fill_(-60000.f);
  expect_healed(trained(scores, [&] { return softmax_sum((scores.to(at::kHalf) + mask) * 4.0); }),
                Label::mask_overflow, "aten::mul");
  const at::Tensor q = leaf(at::full({1, 2, 4}, -8.f)), k = at::full({1, 4, 3}, 8.f, at::kHalf);
  const at::Tensor bias = mask.unsqueeze(0) * 1.09;  // -65400
  expect_healed(trained(q, [&] { return softmax_sum(at::baddbmm(bias, q.to(at::kHalf), k).squeeze(0)); }),
                Label::mask_overflow, "aten::baddbmm");
}

/// How far each result lies from the mean of all: NaN if one is infinite.
at::Tensor spread(const at::Tensor& results) {
  const at::Tensor wide = results.to(at::kFloat);
  return ((wide - wide.mean()) / (wide.std() + 1)).pow(3).sum();
}

at::Tensor second_row_hidden() {
  at::Tensor hidden = at::zeros({2, 3}, at::kBool);
  hidden.select(0, 1).fill_(true);
  return hidden;
}

TEST(MaskOverflow, ConstantsThatAreSummedUp) {
  const at::Tensor scores = leaf(at::randn({2, 3})), hidden = second_row_hidden();
  const double least = -std::numeric_limits<float>::max();
  const auto picked = [&](double constant) {
    return std::get<0>(scores.unsqueeze(2).masked_fill(hidden.unsqueeze(2), constant).max(2));
  };
  expect_healed(trained(scores, [&] { return spread(picked(least).sum(1)); }), Label::mask_overflow,
                "aten::sum");
  expect_healed(trained(scores, [&] { return spread(at::where(hidden, least, scores).mean(1)); }),
                Label::mask_overflow, "aten::mean");
  expect_healed(
      trained(scores, [&] { return spread(scores.to(at::kHalf).masked_fill(hidden, -65504.0).sum(1)); }),
      Label::mask_overflow, "aten::sum");
  expect_healed(
      trained(scores, [&] { return spread(scores.to(at::kBFloat16).masked_fill(hidden, -3e38).cumsum(1)); }),
      Label::mask_overflow, "aten::cumsum");
}

TEST(MaskOverflow, ConstantsInAProductOrAPower) {
  const at::Tensor scores = leaf(at::randn({2, 3})), hidden = second_row_hidden();
  expect_healed(trained(scores,
                        [&] {
                          return spread(at::mm(scores.masked_fill(hidden, -3e38), at::ones({3, 2})));
                        }),
                Label::mask_overflow, "aten::mm");
  expect_healed(trained(scores, [&] { return spread(scores.masked_fill(hidden, -1e30).pow(2).mean(1)); }),
                Label::mask_overflow, "aten::pow");
  // Added to the constant, the mean is lost in rounding; to a number that the data reach it is not.
  const auto deviation = [&](double constant) {
    return (scores.masked_fill(hidden, constant) - scores.mean(1, true)).pow(2).mean(1);
  };
  expect_healed(trained(scores, [&] { return spread(deviation(-1e30)); }), Label::mask_overflow, "aten::pow");
  const at::Tensor large = leaf(at::linspace(-3e30, -1e30, 6).view({2, 3}));
  expect_cause(trained(large, [&] { return spread((large.masked_fill(hidden, -1.f) - 1.f).pow(2)); }),
               Label::fp16_overflow, "aten::pow");
}

TEST(MaskOverflow, ASumOfWhatWasComputedIsNone) {
  const at::Tensor w = leaf(at::full({2, 3}, -40000.f)), hidden = second_row_hidden();
  // Too large without the mask as well; a bound is no mask.
  for (const auto& sum : std::vector<std::function<at::Tensor()>>{
           [&] { return w.to(at::kHalf).sum(1); },
           [&] { return w.to(at::kHalf).masked_fill(hidden, -1e4).sum(1); },
           [&] { return (w * 3).clamp(-40000, 0).to(at::kHalf).sum(1); }})
    expect_cause(trained(w, [&] { return spread(sum()); }), Label::fp16_overflow, "aten::sum");
}

TEST(MaskOverflow, DataThatAloneIsTooLargeIsNotTheMask) {
  const at::Tensor w = leaf(at::full({2, 3}, 60000.f));
  expect_cause(trained(w,
                       [&] {
                         const at::Tensor h = w.to(at::kHalf);
                         return softmax_sum(h + h);
                       }),
               Label::fp16_overflow, "aten::add");
}

TEST(MaskOverflow, ALargeFactorIsNotAMask) {
  const at::Tensor w = leaf(at::tensor({1.5f, 2.5f, -3.5f}).view({1, 3}));
  expect_cause(trained(w, [&] { return softmax_sum(w.to(at::kHalf) * 60000.0); }), Label::fp16_overflow,
               "aten::mul");
}

TEST(MaskOverflow, ARowOfMinusInfIsAnotherCause) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  at::Tensor mask = at::zeros({2, 3});
  mask.select(0, 1).fill_(-testing::kInf);
  expect_cause(trained(w, [&] { return softmax_sum(w + mask); }), Label::all_masked_row, "aten::_softmax");
}

}  // namespace
}  // namespace nanquest
