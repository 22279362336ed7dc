// LOG_ZERO: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::Incident;
using testing::leaf;
using testing::trained;

TEST(LogZero, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("log_zero", {.cause = Label::log_zero,
                                      .phase = Phase::forward,
                                      .op = "aten::log",
                                      .module = "loss",
                                      .precision = PrecisionVerdict::curable,
                                      .poison = {4}});
}

TEST(LogZero, FollowsZerosToTheOpThatMadeThem) {
  const at::Tensor w = leaf(at::tensor({200.f, 0.f}));
  const Finding f = Incident({}, [&] {
                      const at::Tensor loss = -at::log(at::softmax(w, 0)).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_EQ(f.label, Label::log_zero);
  EXPECT_NE(f.explanation.find("aten::_softmax"), std::string::npos) << f.explanation;
}

TEST(LogZero, Log1pAtMinusOne) {
  const at::Tensor w = leaf(at::tensor({-1.f, 0.5f}));
  const Verdict v = Incident({}, [&] {
                      const at::Tensor loss = at::log1p(w).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::log_zero);
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::structural);
}

TEST(LogZero, OtherLogarithmsOtherFormatsInPlace) {
  const at::Tensor w = leaf(at::tensor({0.f, 0.5f}));
  expect_healed(trained(w, [&] { return at::log2(w.to(at::kBFloat16)).to(at::kFloat).sum(); }),
                Label::log_zero, "aten::log2");
  expect_healed(trained(w, [&] { return at::xlogy(at::ones({2}), w).sum(); }), Label::log_zero,
                "aten::xlogy");
  expect_healed(trained(w, [&] { return at::logit(w).sum(); }), Label::log_zero, "aten::logit");
  // Autograd keeps a copy of what log_ overwrites: a guard at log_ comes too late for the derivative.
  expect_cause(trained(w, [&] { return (w * 1).log_().sum(); }), Label::log_zero, "aten::log_");
}

TEST(LogZero, BesideADivisionByTheSameZeros) {
  // A variance of 0: its logarithm is -Inf, what is divided by it +Inf, and their sum NaN. That follows.
  const at::Tensor w = leaf(at::tensor({0.f, 0.5f, 1.f}));
  const Verdict v = trained(w, [&] {
                      const at::Tensor variance = w * w;
                      const at::Tensor logarithm = at::log(variance);
                      return (logarithm + at::ones({3}) / variance).mean();
                    }).verdict();
  EXPECT_EQ(v.cause, Label::log_zero);
  EXPECT_EQ(v.culprit.op, "aten::log");
  ASSERT_GT(v.blame.set.size(), 1U);
  EXPECT_EQ(v.blame.set[1].op, "aten::div");
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_EQ(
      v.fix->change,
      "zeros replaced by a small eps before aten::log, and before all others that read the same values");
}

TEST(LogZero, BesideAnInfinityThatWasMeant) {
  // log(0) = -Inf of a mask is one thing, the zero that underflowed beside it another.
  const at::Tensor w = leaf(at::tensor({0.f, -0.5f, 0.5f}));
  expect_cause(trained(w, [&] { return at::log(w.abs()).mean(); }), Label::log_zero);
}

TEST(LogZero, LogOfNegativeIsNotLogZero) {
  const at::Tensor w = leaf(at::tensor({0.f, -0.5f, 0.5f}));
  expect_cause(trained(w, [&] { return at::log(w).mean(); }), Label::domain);
}

TEST(LogZero, AnEpsilonThatIsLostIsNotLogZero) {
  const at::Tensor w = leaf(at::tensor({0.f, 0.5f}));
  expect_cause(trained(w, [&] { return at::log(w.to(at::kHalf) + 1e-9).to(at::kFloat).sum(); }),
               Label::eps_underflow);
}

TEST(LogZero, DivisionByZeroBeforeItIsNotLogZero) {
  const at::Tensor w = leaf(at::tensor({0.f, 0.5f}));
  expect_cause(trained(w, [&] { return at::log(at::reciprocal(w)).sum(); }), Label::div_zero);
}

}  // namespace
}  // namespace nanquest
