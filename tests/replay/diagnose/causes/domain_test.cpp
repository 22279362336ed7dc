// DOMAIN: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::leaf;
using testing::trained;

TEST(Domain, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("domain", {.cause = Label::domain,
                                    .phase = Phase::forward,
                                    .op = "aten::sqrt",
                                    .module = "gaussian",
                                    .precision = PrecisionVerdict::structural,
                                    .poison = {3}});
}

TEST(Domain, EveryFunctionWithAnEndOfItsDomain) {
  const at::Tensor w = leaf(at::tensor({0.5f, -2.f, 3.f, 1.5f}));
  const std::pair<const char*, at::Tensor (*)(const at::Tensor&)> functions[] = {
      {"aten::log", at::log},      {"aten::log2", at::log2},   {"aten::log1p", at::log1p},
      {"aten::sqrt", at::sqrt},    {"aten::rsqrt", at::rsqrt}, {"aten::acos", at::acos},
      {"aten::asin", at::asin},    {"aten::atanh", at::atanh}, {"aten::acosh", at::acosh},
      {"aten::erfinv", at::erfinv}};
  for (const auto& [op, function] : functions) {
    SCOPED_TRACE(op);
    expect_healed(trained(w, [&, f = function] { return f(w).sum(); }), Label::domain, op);
  }
}

TEST(Domain, FractionalPowerOfANegativeBaseInHalf) {
  const at::Tensor w = leaf(at::tensor({-2.f, 3.f}));
  expect_healed(trained(w, [&] { return at::pow(w.to(at::kHalf), 0.3).to(at::kFloat).sum(); }), Label::domain,
                "aten::pow");
}

TEST(Domain, InPlaceAndForeach) {
  const at::Tensor w = leaf(at::tensor({-2.f, 3.f}));
  expect_cause(trained(w, [&] { return (w * 1).sqrt_().sum(); }), Label::domain, "aten::sqrt_");
  const at::Tensor u = leaf(at::tensor({-2.f, 3.f})), v = leaf(at::tensor({4.f}));
  StepState state;
  state.parameters = {{"u", u}, {"v", v}};
  expect_cause(testing::Incident(state,
                                 [&] {
                                   const at::Tensor loss = (u * u).sum() + v.sum();
                                   loss.backward();
                                   const at::NoGradGuard no_grad;
                                   const PhaseScope phase(Phase::optimizer);
                                   const auto roots = at::_foreach_sqrt({v * 1, u * 1});
                                   u.sub_(roots[1]), v.sub_(roots[0]);
                                   return loss;
                                 }),
               Label::domain, "aten::_foreach_sqrt");
}

TEST(Domain, ACosineThatRoundsPastOneIsOnlyRounding) {
  const at::Tensor w = leaf(at::tensor({1.0000001f, 0.5f}));
  const Verdict v = trained(w, [&] { return at::acos(w).sum(); }).verdict();
  EXPECT_EQ(v.cause, Label::domain) << v.explanation;
}

TEST(Domain, ZeroBesideANegativeNumberIsItsEdge) {
  const at::Tensor w = leaf(at::tensor({0.f, -0.5f, 0.5f}));
  expect_healed(trained(w, [&] { return at::log(w).mean(); }), Label::domain);
}

TEST(Domain, AWholePowerOfANegativeBaseIsNoDomainError) {
  const at::Tensor w = leaf(at::tensor({-300.f, 2.f}));
  expect_cause(trained(w, [&] { return at::pow(w.to(at::kHalf), 3.0).to(at::kFloat).sum(); }),
               Label::fp16_overflow);
  expect_cause(trained(w, [&] { return at::pow(w * 0, -2.0).sum(); }), Label::div_zero);
}

TEST(Domain, LogOfZeroAloneAndASingularRootAreOtherCauses) {
  const at::Tensor w = leaf(at::tensor({0.f, 1.f}));
  expect_cause(trained(w, [&] { return at::log(w).sum(); }), Label::log_zero);
  expect_cause(trained(w, [&] { return at::rsqrt(w).sum(); }), Label::div_zero);
  EXPECT_NE(trained(w, [&] { return at::sqrt(w).sum(); }).finding().label, Label::domain);
}

}  // namespace
}  // namespace nanquest
