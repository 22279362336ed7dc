// DIV_ZERO: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_unknown;
using testing::Incident;
using testing::leaf;

TEST(DivZero, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("div_zero", {.cause = Label::div_zero,
                                      .phase = Phase::forward,
                                      .op = "aten::div",
                                      .module = "masked_mean",
                                      .precision = PrecisionVerdict::structural,
                                      .poison = {1}});
}

TEST(DivZero, ZeroOverZeroIsSaid) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f}));
  const at::Tensor count = at::tensor({0.f, 3.f});
  StepState state;
  state.batch = {{"count", count}};
  const Finding f = Incident(state, [&] {
                      const at::Tensor loss = (w * count / count).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_EQ(f.label, Label::div_zero);
  EXPECT_NE(f.explanation.find("0 / 0"), std::string::npos);
}

TEST(DivZero, LostEpsilonIsNotDivZero) {
  const at::Tensor w = leaf(at::zeros({2, 4}));
  expect_unknown(Incident({},
                          [&] {
                            const at::Tensor h = w.to(at::kHalf);
                            const at::Tensor norm = h.pow(2).sum(1, true) + 1e-8;  // 1e-8 is 0 in fp16
                            at::Tensor loss = (h / norm).to(at::kFloat).sum();
                            loss.backward();
                            return loss;
                          }),
                 "EPS_UNDERFLOW");
}

TEST(DivZero, ZeroOverZeroInBackwardIsNotDivZero) {
  const at::Tensor w = leaf(at::tensor({0.f, 2.f}));
  StepState state;
  state.parameters = {{"w", w}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (at::sqrt(w) * at::tensor({0.f, 1.f})).sum();
    loss.backward();
    return loss;
  });
  EXPECT_NE(incident.finding().label, Label::div_zero);
}

}  // namespace
}  // namespace nanquest
