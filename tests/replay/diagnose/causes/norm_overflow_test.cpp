// NORM_OVERFLOW: its sample, its variants, and what looks like it and is not.
#include "probe/observe/step_scope.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::leaf;

TEST(NormOverflow, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("norm_overflow", {.cause = Label::norm_overflow,
                                           .phase = Phase::optimizer,
                                           .op = "aten::linalg_vector_norm",
                                           .module = "",
                                           .precision = PrecisionVerdict::curable});
}

/// A step whose gradients are `size` each, clipped by `clip` (which is given the gradients) before the
/// update.
Finding clipped(double size, at::ScalarType type,
                const std::function<at::Tensor(const std::vector<at::Tensor>&)>& norm_of) {
  const at::Tensor a = at::ones({30, 30}).to(type).set_requires_grad(true);
  const at::Tensor b = at::ones({40}).to(type).set_requires_grad(true);
  StepState state;
  state.parameters = {{"a", a}, {"b", b}};
  const Incident incident(state, [&] {
    const at::Tensor loss = ((a * size).to(at::kDouble).sum() + (b * size).to(at::kDouble).sum());
    loss.backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    const at::Tensor norm = norm_of({a.grad(), b.grad()});
    for (const at::Tensor& p : {a, b}) {
      p.grad().mul_((1.0 / (norm + 1e-6)).clamp_max(1));
      p.sub_(p.grad(), 0.1);
    }
    return loss;
  });
  EXPECT_FALSE(incident.doc().culprit.value.empty());
  return incident.finding();
}

TEST(NormOverflow, ForeachNormsOfFp16) {
  const Finding f = clipped(3000, at::kHalf, [](const std::vector<at::Tensor>& g) {
    return at::linalg_vector_norm(at::stack(at::_foreach_norm(g)));
  });
  EXPECT_EQ(f.label, Label::norm_overflow) << f.explanation;
}

TEST(NormOverflow, SquaresByHand) {
  const Finding product = clipped(1e20, at::kFloat, [](const std::vector<at::Tensor>& g) {
    return at::sqrt((g[0] * g[0]).sum() + (g[1] * g[1]).sum());
  });
  EXPECT_EQ(product.label, Label::norm_overflow) << product.explanation;
}

TEST(NormOverflow, SumOfSquaresThatFitEach) {
  const Finding f = clipped(1.5e19, at::kFloat, [](const std::vector<at::Tensor>& g) {
    return (g[0].pow(2).sum() + g[1].pow(2).sum()).pow(0.5);
  });
  EXPECT_EQ(f.label, Label::norm_overflow) << f.explanation;
  EXPECT_NE(f.explanation.find("aten::sum"), std::string::npos) << f.explanation;
}

TEST(NormOverflow, InTheNextBiggerNormOfNorms) {
  const Finding f = clipped(2000, at::kHalf, [](const std::vector<at::Tensor>& g) {
    return at::linalg_vector_norm(at::cat(
        {at::linalg_vector_norm(g[0]).view({1}).expand({4}), at::linalg_vector_norm(g[1]).view({1})}));
  });
  EXPECT_EQ(f.label, Label::norm_overflow) << f.explanation;
}

TEST(NormOverflow, AnOptimizersSecondMomentIsNot) {
  const at::Tensor w = leaf(at::ones({3})), v = at::zeros({3});
  StepState state;
  state.parameters = {{"w", w}};
  state.optimizer = {{"v", v}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (w * 1e20).sum();
    loss.backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    v.mul_(0.9).add_(w.grad().pow(2), 0.1);
    w.addcdiv_(w.grad(), v.sqrt() + 1e-8, -0.1);
    return loss;
  });
  ASSERT_FALSE(incident.doc().culprit.value.empty());
  EXPECT_NE(incident.finding().label, Label::norm_overflow);
}

TEST(NormOverflow, ANormOfActivationsIsNot) {
  const at::Tensor w = leaf(at::full({300}, 300.f)), other = leaf(at::ones({2}));
  StepState state;
  state.parameters = {{"w", w}, {"other", other}};
  const Incident incident(state, [&] {
    const at::Tensor h = w.to(at::kHalf) * 20;
    const at::Tensor loss = (h / at::linalg_vector_norm(h * 10)).to(at::kFloat).log().sum() + other.sum();
    loss.backward();
    return loss;
  });
  ASSERT_FALSE(incident.doc().culprit.value.empty());
  EXPECT_NE(incident.finding().label, Label::norm_overflow);
}

TEST(NormOverflow, InfiniteGradientsAreNot) {
  const at::Tensor w = leaf(at::tensor({0.f, 1.f}));
  StepState state;
  state.parameters = {{"w", w}};
  const Incident incident(state, [&] {
    const at::Tensor loss = at::sqrt(w).sum();
    loss.backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    w.grad().mul_(1.0 / (at::linalg_vector_norm(w.grad()) + 1e-6));
    w.sub_(w.grad(), 0.1);
    return loss;
  });
  EXPECT_EQ(incident.finding().label, Label::singular_grad);
}

}  // namespace
}  // namespace nanquest
