// EPS_UNDERFLOW: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::leaf;
using testing::trained;

TEST(EpsUnderflow, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("eps_underflow", {.cause = Label::eps_underflow,
                                           .phase = Phase::forward,
                                           .op = "aten::rsqrt",
                                           .module = "norm",
                                           .precision = PrecisionVerdict::curable,
                                           .poison = {2}});
}

TEST(EpsUnderflow, AddedToADenominator) {
  const at::Tensor w = leaf(at::zeros({2, 4}));
  expect_healed(trained(w,
                        [&] {
                          const at::Tensor h = w.to(at::kHalf);
                          return (h / (h.abs().sum(1, true) + 1e-8)).to(at::kFloat).sum();
                        }),
                Label::eps_underflow, "aten::div");
}

TEST(EpsUnderflow, ClampedToIt) {
  const at::Tensor w = leaf(at::zeros({2, 4}));
  expect_healed(trained(w,
                        [&] {
                          const at::Tensor h = w.to(at::kHalf);
                          return (h / h.abs().sum(1, true).clamp_min(1e-12)).to(at::kFloat).sum();
                        }),
                Label::eps_underflow, "aten::div");
}

TEST(EpsUnderflow, LostInACastBehindIt) {
  const at::Tensor w = leaf(at::zeros({2, 4}));
  expect_cause(trained(w,
                       [&] {
                         const at::Tensor norm = (w.pow(2).sum(1, true) + 1e-8).to(at::kHalf);
                         return (w.to(at::kHalf) / norm).to(at::kFloat).sum();
                       }),
               Label::eps_underflow, "aten::div");
}

TEST(EpsUnderflow, BeforeALogarithm) {
  const at::Tensor w = leaf(at::tensor({0.f, 1.f}));
  expect_healed(trained(w, [&] { return at::log(w.to(at::kHalf) + 1e-8).to(at::kFloat).sum(); }),
                Label::eps_underflow, "aten::log");
}

TEST(EpsUnderflow, BesideALargestValue) {
  // Adamax in fp16: the larger of what was and of |gradient| + 1e-8.
  const at::Tensor w = leaf(at::tensor({0.f, 1.f})), before = at::zeros({2}, at::kHalf);
  expect_healed(trained(w,
                        [&] {
                          const at::Tensor h = w.to(at::kHalf),
                                           norm = at::maximum(before * 0.9, h.abs() + 1e-8);
                          return (h / norm).to(at::kFloat).sum();
                        }),
                Label::eps_underflow, "aten::div");
}

TEST(EpsUnderflow, ABoundThatTheFormatRounds) {
  // The distance in a ball, in bf16, where 0.999 is 1; and a cross entropy by hand, where 1 - 1e-8 is 1 in
  // fp32.
  const at::Tensor depth = leaf(at::tensor({0.3f, 4.f, 6.f}));
  const auto room = [&](double most) {
    const at::Tensor r = depth.to(at::kBFloat16).tanh().clamp(std::nullopt, most);
    return (1 / ((1 - r * r) * (1 - r * r))).to(at::kFloat).sum();
  };
  expect_healed(trained(depth, [&] { return room(1 - 1e-3); }), Label::eps_underflow, "aten::div_");
  const at::Tensor logit = leaf(at::tensor({0.5f, 30.f}));
  expect_healed(trained(logit, [&] { return -at::log(1 - logit.sigmoid().clamp(1e-8, 1 - 1e-8)).sum(); }),
                Label::eps_underflow, "aten::log");
  // A bound of 1 keeps nothing from 1.
  expect_cause(trained(depth, [&] { return room(1); }), Label::div_zero, "aten::div_");
}

TEST(EpsUnderflow, AnEpsilonOfZeroInTheRootOfAVariance) {
  // A row of padding, in a norm written by hand. A zero that is added to a count is none: that stays a
  // division by zero.
  const at::Tensor w = leaf(at::tensor({0.f, 0.f, 1.f, 2.f}).view({2, 2}));
  expect_healed(trained(w, [&] { return (w * at::rsqrt(w.pow(2).mean(1, true) + 0.0)).sum(); }),
                Label::eps_underflow, "aten::rsqrt");
  const at::Tensor v = leaf(at::ones({2, 2}));
  expect_cause(trained(v, [&] { return (v / ((v > 9).sum() + 0.0)).sum(); }), Label::div_zero, "aten::div");
}

TEST(EpsUnderflow, AnEpsilonOfZeroInANorm) {
  const at::Tensor w = leaf(at::ones({3, 4}));
  expect_healed(trained(w, [&] { return at::layer_norm(w, {4}, {}, {}, 0.0).sum(); }), Label::eps_underflow,
                "aten::native_layer_norm");
}

TEST(EpsUnderflow, AnEpsilonOfZeroInAnOptimizer) {
  for (const at::Scalar& eps : {at::Scalar(0.0), at::Scalar(0)}) {  // also as programs write it
    const at::Tensor w = leaf(at::ones({3})), m = at::zeros({3}), v = at::zeros({3});
    StepState state;
    state.parameters = {{"w", w}};
    state.optimizer = {{"w.exp_avg", m}, {"w.exp_avg_sq", v}};
    expect_healed(testing::Incident(state,
                                    [&] {
                                      const at::Tensor loss = (w * at::tensor({0.f, 1.f, 2.f})).sum();
                                      loss.backward();
                                      const at::NoGradGuard no_grad;
                                      const PhaseScope phase(Phase::optimizer);
                                      m.mul_(0.9).add_(w.grad(), 0.1);
                                      v.mul_(0.99).addcmul_(w.grad(), w.grad(), 0.01);
                                      w.addcdiv_(m, v.sqrt().add_(eps), -1e-3);
                                      return loss;
                                    }),
                  Label::eps_underflow, "aten::addcdiv_");
  }
}

TEST(EpsUnderflow, ACountOfZeroIsDivZero) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f})), mask = at::zeros({2});
  expect_cause(trained(w, [&] { return (w * mask).sum() / mask.sum(); }), Label::div_zero);
}

TEST(EpsUnderflow, AnEpsilonThatIsCancelledIsNotLost) {
  const at::Tensor w = leaf(at::tensor({-1e-3f, 2.f}));
  expect_cause(trained(w, [&] { return (w / (w + 1e-3f)).sum(); }), Label::div_zero);
}

TEST(EpsUnderflow, ALogarithmWithoutOneIsLogZero) {
  const at::Tensor w = leaf(at::tensor({0.f, 1.f}));
  expect_cause(trained(w, [&] { return at::log(w.to(at::kHalf)).to(at::kFloat).sum(); }), Label::log_zero);
}

}  // namespace
}  // namespace nanquest
