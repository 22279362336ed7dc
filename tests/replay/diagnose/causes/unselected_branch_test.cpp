// UNSELECTED_BRANCH: its sample, its variants, and what looks like it and is not.
#include <torch/csrc/autograd/autograd.h>

#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::found_in;
using testing::Incident;
using testing::leaf;
using testing::trained;

TEST(UnselectedBranch, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("unselected_branch", {.cause = Label::unselected_branch,
                                               .phase = Phase::backward,
                                               .op = "aten::div",
                                               .module = "huber",
                                               .precision = PrecisionVerdict::structural,
                                               .poison = {2}});
}

TEST(UnselectedBranch, WhereOverPolesAndWhatIsUndefined) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f, 0.f, 9.f}));
  const at::Tensor zero = at::zeros({4});
  const auto branch = [&](const std::function<at::Tensor()>& f) {
    return found_in(w, [&] { return at::where(w > 0, f(), zero).sum(); });
  };
  for (const auto& f : std::vector<std::function<at::Tensor()>>{
           [&] { return at::log(w); }, [&] { return at::pow(w, -0.3); }, [&] { return at::rsqrt(w); },
           [&] { return at::reciprocal(w); }, [&] { return 3 / w; }, [&] { return at::sqrt(w - 1); },
           [&] { return at::log(w.to(at::kHalf)).to(at::kFloat); },
           [&] { return at::rsqrt(w.to(at::kDouble)).to(at::kFloat) * 2; }}) {
    const Finding finding = branch(f);
    EXPECT_EQ(finding.label, Label::unselected_branch) << finding.explanation;
  }
}

TEST(UnselectedBranch, ItsPlaceboTouchesOtherElementsOfTheBranch) {
  // The argument of the logarithm comes only from a bias: there a number would help as well.
  const at::Tensor w = leaf(at::tensor({0.f, 2.f, 3.f}));
  StepState state;
  state.parameters = {{"w", w}};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor square = (w * 1).square();
                      const at::Tensor size = at::where(square > 0, at::log(square), at::zeros({3}));
                      const at::Tensor loss = (size - 1).square().mean();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::unselected_branch);
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_TRUE(v.fix->verified);
}

TEST(UnselectedBranch, AnOverflowOfEveryFormatThatIsThrownAway) {
  const at::Tensor w = leaf(at::tensor({900.f, 1.f, -3.f}));
  const Finding f = found_in(w, [&] { return at::where(w > 80, w, at::log1p(at::exp(w))).sum(); });
  EXPECT_EQ(f.label, Label::unselected_branch) << f.explanation;
}

TEST(UnselectedBranch, WhatAWiderRangeHoldsIsNot) {
  // exp(200) is a number in fp64.
  const at::Tensor w = leaf(at::tensor({200.f, 1.f, -3.f}));
  const Finding f = found_in(w, [&] { return at::where(w > 80, w, at::log1p(at::exp(w))).sum(); });
  EXPECT_EQ(f.label, Label::exp_overflow) << f.explanation;
}

TEST(UnselectedBranch, WhatForwardThrowsAwayDoesItsHarmInBackward) {
  const at::Tensor w = leaf(at::tensor({-1.f, 4.f}));
  StepState state;
  state.parameters = {{"w", w}};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor loss = (at::where(w > 0, at::sqrt(w), w) * 2).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::unselected_branch) << v.explanation;
  EXPECT_EQ(v.phase, Phase::backward);
  EXPECT_EQ(v.culprit.op, "aten::div");
}

TEST(UnselectedBranch, WhatIsTakenOutAsNaN) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f})), n = at::tensor({0.f, 4.f});
  const Finding f = found_in(w, [&] { return at::nan_to_num(w * n / n, 0.0).sum(); });
  EXPECT_EQ(f.label, Label::unselected_branch) << f.explanation;
  // What is left counts in a mean, so that the loss is not the same whatever stands there.
  const at::Tensor power = leaf(at::tensor({-1.f, 2.f, 4.f}));
  const Finding g = found_in(power, [&] { return at::nanmean(at::sqrt(power)).square(); });
  EXPECT_EQ(g.label, Label::unselected_branch) << g.explanation;
}

TEST(UnselectedBranch, WhatADerivativeInTheLossBringsBack) {
  // A residual of a differential equation: forward chooses where the power has a value, its derivative is
  // NaN.
  const at::Tensor w = leaf(at::tensor({-0.5f, 2.f, 3.f}));
  const auto chosen = [](const at::Tensor& x) {
    return at::where(x > 0, at::pow(x, 1.56), at::ones_like(x));
  };
  const auto slope_in_the_loss = [&] {
    const at::Tensor x = w * 1;
    const auto slope =
        torch::autograd::grad({chosen(x).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true);
    return slope[0].square().sum();
  };
  expect_healed(trained(w, slope_in_the_loss), Label::unselected_branch);
  // Without a choice it is a number outside the domain.
  const auto unchosen = [&] {
    const at::Tensor x = w * 1;
    const auto slope = torch::autograd::grad({at::pow(x, 1.56).sum()}, {x}, {}, true, true);
    return slope[0].square().sum();
  };
  expect_cause(trained(w, unchosen), Label::domain);
}

TEST(UnselectedBranch, TheChoiceMustComeBeforeTheFirstSingularOp) {
  // sin(a / 2) / sin(a) at a = acos(1): the division is undefined, and so is the slope of acos.
  const at::Tensor w = leaf(at::tensor({0.f, 0.4f, 0.9f}));
  StepState state;
  state.parameters = {{"w", w}};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor cosine = 1 - w, angle = at::acos(cosine);
                      const at::Tensor part = at::sin(angle * 0.5) / at::sin(angle);
                      const at::Tensor loss =
                          at::where(cosine > 0.9995, at::full_like(part, 0.5), part).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::unselected_branch) << v.explanation;
  EXPECT_EQ(v.culprit.op, "aten::div");
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_NE(v.fix->change.find("aten::acos"), std::string::npos) << v.fix->change;
}

TEST(UnselectedBranch, MasksMaximaAndIndices) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f})), keep = at::arange(2) == 0;
  for (const auto& choose : std::vector<std::function<at::Tensor(const at::Tensor&)>>{
           [&](const at::Tensor& y) { return y.masked_fill(keep, 0); },
           [](const at::Tensor& y) { return at::clamp_min(y, 1e-3); },
           [](const at::Tensor& y) { return at::relu(y); },
           [](const at::Tensor& y) { return at::maximum(y, at::full_like(y, -2)); },
           [](const at::Tensor& y) { return y.index({at::tensor({1}, at::kLong)}); }}) {
    const Finding f = found_in(w, [&] { return choose(at::log(w)).sum(); });
    EXPECT_EQ(f.label, Label::unselected_branch) << f.explanation;
  }
}

TEST(UnselectedBranch, WholeRowsOfAReduction) {
  at::Tensor values = at::ones({3, 4});
  values[1].zero_();
  const at::Tensor w = leaf(values);
  const at::Tensor valid = at::arange(3) != 1;
  const Finding f =
      found_in(w, [&] { return at::where(valid, w.pow(2).sum(1).log(), at::zeros({3})).sum(); });
  EXPECT_EQ(f.label, Label::unselected_branch) << f.explanation;
}

TEST(UnselectedBranch, ItsFixLeavesTheLossAlone) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f})), other = leaf(at::tensor({1.f, 2.f}));
  StepState state;
  state.parameters = {{"w", w}, {"other", other}};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor loss =
                          (at::where(w > 0, at::log(w), at::zeros({2})) + other * other).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::unselected_branch) << v.explanation;
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_NE(v.fix->change.find("where()"), std::string::npos) << v.fix->change;
}

TEST(UnselectedBranch, ARootThatIsUsedIsNot) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f}));
  EXPECT_NE(found_in(w, [&] { return at::where(w >= 0, at::sqrt(w), at::zeros({2})).sum(); }).label,
            Label::unselected_branch);
}

TEST(UnselectedBranch, ADerivativeOfZeroThatIsNoSelectionIsNot) {
  // The square sends 2 sqrt(0) = 0 back to the root: nothing was thrown away.
  const at::Tensor w = leaf(at::tensor({0.f, 4.f}));
  const Finding f = found_in(w, [&] { return at::sqrt(w).pow(2).sum(); });
  EXPECT_EQ(f.label, Label::singular_grad) << f.explanation;
}

TEST(UnselectedBranch, ASlopeThatIsInfiniteWhereForwardIsFiniteIsNot) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f})), keep = at::tensor({0.f, 1.f}), none = at::zeros({2});
  for (const auto& f : std::vector<std::function<at::Tensor()>>{
           [&] { return at::where(w > 0, at::sqrt(w), none); },
           [&] { return at::where(w > 0, at::pow(w, 0.3), none); }, [&] { return at::sqrt(w) * keep; },
           [&] { return at::clamp_min(at::sqrt(w), 1e-3); },
           [&] { return keep * at::relu(at::sqrt(w) - 0.1) + (1 - keep) * at::relu(-1 - at::sqrt(w)); },
           [&] { return at::where(w > 0, at::acos(w * 0 + 1), none); }}) {
    const Finding finding = found_in(w, [&] { return f().sum(); });
    EXPECT_EQ(finding.label, Label::singular_grad) << finding.explanation;
  }
}

/// The step was given infinities as bounds or marks, and throws away what it computes of them.
TEST(UnselectedBranch, InfinitiesThatAreMeantAndThrownAway) {
  const at::Tensor w = leaf(at::tensor({1.f, 5.f, 2.f}));
  const float inf = std::numeric_limits<float>::infinity();
  const at::Tensor upper = at::tensor({inf, 3.f, 4.f}), start = at::tensor({-inf, 1.f, 2.f}),
                   none = at::zeros({3});
  for (const auto& f : std::vector<std::function<at::Tensor()>>{
           [&] { return at::where(w > upper, (w - upper).square(), none); },
           [&] { return at::where(start > 0, at::exp(w - start), none); },
           [&] { return (w * upper).masked_fill(at::isinf(upper), 0); },
           [&] {
             return (w.to(at::kHalf) * upper.to(at::kHalf)).index({at::tensor({1, 2}, at::kLong)});
           },
           [&] { return at::minimum(w * upper, at::full({3}, 30.f)); }}) {
    const Finding finding = found_in(w, [&] { return f().sum(); });
    EXPECT_EQ(finding.label, Label::unselected_branch) << finding.explanation;
    EXPECT_EQ(finding.origin, Origin::op);
    EXPECT_EQ(finding.phase, Phase::backward);
  }
}

TEST(UnselectedBranch, InfinitiesOfDataThatAreUsedAreNot) {
  const at::Tensor w = leaf(at::tensor({1.f, 5.f, 2.f}));
  const at::Tensor x = at::tensor({std::numeric_limits<float>::infinity(), 3.f, 4.f});
  const auto label = [&](const std::function<at::Tensor()>& f) {
    StepState state;
    state.parameters = {{"w", w}};
    state.batch = {{"x", x}};
    return testing::backward_of(state, [&] { return f().sum(); }).finding().label;
  };
  EXPECT_EQ(label([&] { return (w - x).square(); }), Label::bad_data);
  EXPECT_EQ(label([&] { return at::tanh(w * x); }), Label::bad_data)
      << "a saturating function selects nothing";
  EXPECT_EQ(label([&] { return at::minimum(w * x, at::full({3}, 30.f)); }), Label::bad_data);
}

TEST(UnselectedBranch, BadBatchUnderAMaskIsNot) {
  const at::Tensor w = leaf(at::ones({2}));
  at::Tensor x = at::tensor({testing::kNaN, 1.0}).to(at::kFloat);
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}};
  const Finding f = Incident(state, [&] {
                      const at::Tensor loss = at::where(at::isnan(x), at::zeros({2}), w * x).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_NE(f.label, Label::unselected_branch) << f.explanation;
}

}  // namespace
}  // namespace nanquest
