// SINGULAR_GRAD: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_unknown;
using testing::Incident;
using testing::leaf;

TEST(SingularGrad, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("singular_grad", {.cause = Label::singular_grad,
                                           .phase = Phase::backward,
                                           .op = "aten::div",
                                           .module = "distance",
                                           .precision = PrecisionVerdict::structural,
                                           .poison = {2}});
}

TEST(SingularGrad, AcosAtOneAndPowBelowOne) {
  const at::Tensor a = leaf(at::tensor({1.f, 0.5f}));
  StepState with_a;
  with_a.parameters = {{"a", a}};
  const Verdict acos = Incident(with_a, [&] {
                         const at::Tensor loss = at::acos(a).sum();
                         loss.backward();
                         return loss;
                       }).verdict();
  EXPECT_EQ(acos.cause, Label::singular_grad) << acos.explanation;
  EXPECT_EQ(acos.phase, Phase::backward);

  const at::Tensor b = leaf(at::tensor({0.f, 2.f}));
  StepState with_b;
  with_b.parameters = {{"b", b}};
  const Verdict pow = Incident(with_b, [&] {
                        const at::Tensor loss = at::pow(b, 0.5).sum();
                        loss.backward();
                        return loss;
                      }).verdict();
  EXPECT_EQ(pow.cause, Label::singular_grad) << pow.explanation;
  EXPECT_EQ(pow.precision.verdict, PrecisionVerdict::structural);
}

TEST(SingularGrad, UnselectedBranchIsNotSingularGrad) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f}));
  StepState state;
  state.parameters = {{"w", w}};
  expect_unknown(Incident(state,
                          [&] {
                            const at::Tensor loss = at::where(w > 0, at::sqrt(w), at::zeros({2})).sum();
                            loss.backward();
                            return loss;
                          }),
                 "");
}

}  // namespace
}  // namespace nanquest
