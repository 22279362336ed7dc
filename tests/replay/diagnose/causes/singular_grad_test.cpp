// SINGULAR_GRAD: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

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

Finding finding_of(const std::vector<at::Tensor>& parameters, const std::function<at::Tensor()>& f) {
  StepState state;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    state.parameters.emplace_back("p" + std::to_string(i), parameters[i]);
  for (const at::Tensor& p : parameters)
    p.mutable_grad() = at::Tensor();  // an earlier step's would be added to
  return Incident(state,
                  [&] {
                    const at::Tensor loss = f();
                    loss.backward();
                    return loss;
                  })
      .finding();
}

TEST(SingularGrad, OtherFunctionsFormatsAndPlaces) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f, 0.f})), u = leaf(at::tensor({1.f, 0.5f, -1.f}));
  const at::Tensor x = leaf(at::tensor({0.f, 3.f})), y = leaf(at::tensor({0.f, 4.f}));
  const auto label = [](const Finding& f) { return f.label; };
  EXPECT_EQ(label(finding_of({w}, [&] { return at::pow(w, 0.9).sum(); })), Label::singular_grad);
  EXPECT_EQ(label(finding_of({w}, [&] { return at::sqrt(w.to(at::kHalf)).to(at::kFloat).sum(); })),
            Label::singular_grad);
  EXPECT_EQ(label(finding_of({w}, [&] { return (w * 1.0).sqrt_().sum(); })), Label::singular_grad);
  EXPECT_EQ(label(finding_of({u}, [&] { return at::asin(u).sum(); })), Label::singular_grad);
  EXPECT_EQ(label(finding_of({x, y}, [&] { return at::hypot(x, y).sum(); })), Label::singular_grad);
  // Its derivative takes the logarithm of 0; the function itself is 0 there.
  EXPECT_EQ(label(finding_of({w}, [&] { return at::special_entr(w).sum(); })), Label::singular_grad);
  EXPECT_EQ(label(finding_of({x, y},
                             [&] {
                               const std::vector<at::Tensor> roots = at::_foreach_sqrt({x, y});
                               return roots[0].sum() + roots[1].sum();
                             })),
            Label::singular_grad);
}

/// A probability that rounds to 1: 1 - p is 0 in fp32, and 1e-11 in fp64.
TEST(SingularGrad, AtAZeroThatRoundingMade) {
  const at::Tensor w = leaf(at::tensor({25.f, 1.f, -2.f})), x = leaf(at::tensor({3.f, 4.f}));
  const auto explained = [](const Incident& incident) {
    const Verdict v = incident.verdict();
    EXPECT_EQ(v.cause, Label::singular_grad) << v.explanation;
    EXPECT_EQ(v.phase, Phase::backward);
    EXPECT_NE(v.explanation.find("Rounding put it there"), std::string::npos) << v.explanation;
    EXPECT_TRUE(v.fix.has_value()) << v.explanation;
  };
  explained(testing::trained(w, [&] {
    const at::Tensor p = at::sigmoid(w);
    return (at::softplus(-w) * at::pow(1 - p, 0.5)).mean();
  }));
  explained(testing::trained(x, [&] { return at::sqrt((x + 1e-9) - x.detach()).sum(); }));
  w.mutable_grad() = at::Tensor();
  const Verdict exact = testing::trained(w, [&] { return at::pow(w * 0, 0.5).sum(); }).verdict();
  EXPECT_EQ(exact.explanation.find("Rounding"), std::string::npos) << exact.explanation;
}

TEST(SingularGrad, UnselectedBranchIsNotSingularGrad) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f}));
  EXPECT_NE(finding_of({w}, [&] { return at::where(w > 0, at::log(w), at::zeros({2})).sum(); }).label,
            Label::singular_grad);
}

/// A distance of 0 behind a closed hinge: the gradient that comes back is exactly zero.
TEST(SingularGrad, WhateverMadeTheGradientZero) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f, 3.f, 4.f}).view({2, 2})), same = at::tensor({1.f, 0.f});
  const at::Tensor other = at::tensor({1.f, 2.f, 3.5f, 4.f}).view({2, 2});
  const auto hinged = [&](const at::Tensor& d) {
    return (same * at::relu(d - 0.1) + (1 - same) * at::relu(1 - d)).mean();
  };
  for (const auto& distance : std::vector<std::function<at::Tensor()>>{
           [&] { return (w - other).square().sum(1).sqrt(); },
           [&] { return (w - other).pow(2).sum(1).pow(0.5); },
           [&] { return ((w - other).abs().sum(1) * 2).sqrt(); },
           [&] { return (w.to(at::kDouble) - other).square().sum(1).sqrt().to(at::kFloat); },
           [&] { return at::acos(1 - (w - other).square().sum(1)); },
           [&] { return (w - other).square().mean(1).pow(0.25); }}) {
    const Finding f = finding_of({w}, [&] { return hinged(distance()); });
    EXPECT_EQ(f.label, Label::singular_grad) << f.explanation;
  }
}

TEST(SingularGrad, TinyArgumentsWhoseDerivativeOverflowsAreNotSingular) {
  // 1e-40 is no zero: the derivative of its root of order 100 is finite, but beyond fp32.
  const at::Tensor w = leaf(at::tensor({1e-40f, 4.f}));
  EXPECT_NE(finding_of({w}, [&] { return (at::pow(w, 0.01) * 1.0).sum(); }).label, Label::singular_grad);
}

TEST(SingularGrad, SquaresThatUnderflowInBackwardAreNotSingular) {
  // (1e-25)² + (1e-25)² is zero in fp32: the angle itself is well defined there.
  const at::Tensor x = leaf(at::tensor({1e-25f, 3.f})), y = leaf(at::tensor({1e-25f, 4.f}));
  StepState state;
  state.parameters = {{"x", x}, {"y", y}};
  const Incident incident(state, [&] {
    const at::Tensor loss = at::atan2(x, y).sum();
    loss.backward();
    return loss;
  });
  EXPECT_NE(incident.finding().label, Label::singular_grad);
}

TEST(SingularGrad, AnOverflowOfTheGradientIsNotSingular) {
  const at::Tensor w = leaf(at::tensor({1e-3f, 4.f}));
  EXPECT_NE(finding_of({w},
                       [&] {
                         const at::Tensor h = at::sqrt(w.to(at::kHalf));
                         return (h.to(at::kFloat) * 6e4).sum();
                       })
                .label,
            Label::singular_grad);
}

}  // namespace
}  // namespace nanquest
