// EXP_OVERFLOW: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::leaf;
using testing::trained;

TEST(ExpOverflow, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("exp_overflow", {.cause = Label::exp_overflow,
                                          .phase = Phase::forward,
                                          .op = "aten::exp",
                                          .module = "laplace",
                                          .precision = PrecisionVerdict::curable,
                                          .poison = {4}});
}

TEST(ExpOverflow, EveryExponentialInEveryFormat) {
  const at::Tensor w = leaf(at::tensor({1.f, 800.f}));
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    SCOPED_TRACE(at::toString(type));
    expect_healed(trained(w, [&] { return at::log(at::exp(w.to(type)).sum()).to(at::kFloat); }),
                  Label::exp_overflow, "aten::exp");
    expect_healed(trained(w, [&] { return at::log(at::expm1(w.to(type)).sum()).to(at::kFloat); }),
                  Label::exp_overflow, "aten::expm1");
    expect_healed(trained(w, [&] { return at::log(at::cosh(w.to(type)).sum()).to(at::kFloat); }),
                  Label::exp_overflow, "aten::cosh");
  }
  expect_healed(trained(w, [&] { return at::exp2(w).sum(); }), Label::exp_overflow, "aten::exp2");
}

TEST(ExpOverflow, InPlaceAndPowerOfAConstant) {
  const at::Tensor w = leaf(at::tensor({1.f, 200.f}));
  expect_cause(trained(w, [&] { return (w * 1).exp_().sum(); }), Label::exp_overflow, "aten::exp_");
  expect_healed(trained(w, [&] { return at::pow(2.0, w).sum(); }), Label::exp_overflow, "aten::pow");
  expect_healed(trained(w, [&] { return at::pow(w, 20.0).sum(); }), Label::exp_overflow, "aten::pow");
}

TEST(ExpOverflow, OfAMatrix) {
  // exp(100) per hour in fp32; a matrix whose exponential fits is none, whatever else overflows in it.
  const at::Tensor rate = leaf(at::tensor({-1.f, 1.f, 0.5f, 1.f}).view({2, 2}));
  expect_healed(trained(rate, [&] { return at::linalg_matrix_exp(rate * 200).sum(); }), Label::exp_overflow,
                "aten::linalg_matrix_exp");
  const at::Tensor large = leaf(at::full({1, 1}, 80.f));
  expect_cause(trained(large, [&] { return at::linalg_matrix_exp(large).pow(2).sum(); }),
               Label::fp16_overflow, "aten::pow");
}

TEST(ExpOverflow, EvidenceIsTheNumberAgainstTheFormatsEnd) {
  const at::Tensor w = leaf(at::full({4}, 12.f));
  const Finding f = trained(w, [&] { return at::exp(w.to(at::kHalf)).to(at::kFloat).mean(); }).finding();
  ASSERT_EQ(f.label, Label::exp_overflow) << f.explanation;
  EXPECT_EQ(f.evidence[0].value, "162755");  // e^12
  EXPECT_EQ(f.evidence[0].limit, "65504");
}

TEST(ExpOverflow, ASmallPowerAndAProductAreRangeOverflow) {
  const at::Tensor w = leaf(at::tensor({1.f, 300.f}));
  expect_cause(trained(w, [&] { return at::pow(w.to(at::kHalf), 2.0).to(at::kFloat).sum(); }),
               Label::fp16_overflow);
  expect_cause(trained(w, [&] { return (w.to(at::kHalf) * w.to(at::kHalf)).to(at::kFloat).sum(); }),
               Label::fp16_overflow);
}

TEST(ExpOverflow, APowerAtItsPoleIsNotExpOverflow) {
  const at::Tensor w = leaf(at::tensor({1.f, 0.f}));
  expect_cause(trained(w, [&] { return at::pow(w, -8.0).sum(); }), Label::div_zero);
  const at::Tensor large = leaf(at::full({4}, 1e25f));  // all alike
  expect_cause(trained(large, [&] { return at::pow(large, 2.0).sum(); }), Label::fp16_overflow, "aten::pow");
}

}  // namespace
}  // namespace nanquest
