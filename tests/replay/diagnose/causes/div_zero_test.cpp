// DIV_ZERO: its sample, its variants, and what looks like it and is not.
#include <torch/csrc/autograd/custom_function.h>

#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::Incident;
using testing::leaf;
using testing::trained;

TEST(DivZero, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("div_zero", {.cause = Label::div_zero,
                                      .phase = Phase::forward,
                                      .op = "aten::div",
                                      .module = "masked_mean",
                                      .precision = PrecisionVerdict::structural,
                                      .poison = {1}});
}

/// Weights in steps of a scale, which is 0 for a row of zeros. Half of them lie half-way between two steps,
/// where fp32 and fp64 round to different sides: no reason against what mends the division.
TEST(DivZero, AFixIsRightWhereRoundingFallsToTheOtherSide) {
  at::Tensor values = (at::arange(24) + 0.5f).view({3, 8}) * 0.1f;
  values[1].zero_();
  const at::Tensor w = leaf(values);
  const Verdict v = trained(w, [&] {
                      const at::Tensor scale = (w.detach().amax(1, true) > 0) * 0.1f;
                      const at::Tensor steps = w / scale;
                      return (((steps.round() - steps).detach() + steps) * scale - 1).pow(3).sum();
                    }).verdict();
  EXPECT_EQ(v.cause, Label::div_zero) << v.explanation;
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_EQ(testing::tried(v, "zeros replaced by one").not_a_fix, "");
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

/// The mean over the labels that count, by hand.
std::string said_of_labels(const at::Tensor& labels,
                           const std::function<at::Tensor(const at::Tensor&)>& counts) {
  const at::Tensor w = leaf(at::ones({4}));
  StepState state;
  state.batch = {{"labels", labels}};
  return Incident(state,
                  [&] {
                    const at::Tensor valid = counts(labels).to(at::kFloat);
                    const at::Tensor loss = (w * valid).sum() / valid.sum();
                    loss.backward();
                    return loss;
                  })
      .finding()
      .explanation;
}

TEST(DivZero, OfLabelsThatAreAllIgnoredSaysSo) {
  const at::Tensor ignored = at::full({4}, -100, at::kLong),
                   negative = at::tensor({-1, -2, -1, -1}, at::kLong);
  const auto begins = [](const std::string& text, const char* with) {
    EXPECT_EQ(text.rfind(with, 0), 0u) << text;
  };
  begins(said_of_labels(ignored, [](const at::Tensor& y) { return y != -100; }),
         "All 4 labels are ignored (-100). ");
  begins(said_of_labels(ignored, [](const at::Tensor& y) { return (y == -100).logical_not(); }),
         "All 4 labels are ignored (-100). ");
  begins(said_of_labels(negative, [](const at::Tensor& y) { return y >= 0; }),
         "All 4 labels are ignored (none of them is ge 0). ");
}

TEST(DivZero, OfAMaskThatLeavesLabelsInSaysNothingOfThem) {
  const at::Tensor labels = at::tensor({1, 2, 3, 4}, at::kLong);
  const std::string text = said_of_labels(
      labels, [](const at::Tensor& y) { return at::logical_and(y != -100, at::zeros({4}, at::kBool)); });
  EXPECT_NE(text.find("divides by exactly zero"), std::string::npos) << text;
  EXPECT_EQ(text.find("ignored"), std::string::npos) << text;
}

TEST(DivZero, ACountIsAWholeNumber) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f}));
  const Verdict v = trained(w, [&] {
                      const at::Tensor chosen = w > 9;
                      return w.pow(2).mean() + (w * chosen).sum() / chosen.sum();
                    }).verdict();
  EXPECT_EQ(v.cause, Label::div_zero) << v.explanation;
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_NE(v.fix->change.find("replaced by one"), std::string::npos) << v.fix->change;
}

/// A derivative written by hand that divides by what may be zero.
struct Gate : torch::autograd::Function<Gate> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x.clamp_min(0);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor kept = context->get_saved_variables()[0].clamp_min(0);
    return {gradients[0] * (kept / kept)};
  }
};

TEST(DivZero, InADerivativeThatTheProgramWrote) {
  const at::Tensor w = leaf(at::tensor({1.f, -2.f}));
  expect_cause(trained(w, [&] { return Gate::apply(w).sum(); }), Label::div_zero, "aten::div");
}

TEST(DivZero, OtherQuotientsOtherFormatsInPlace) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f})), zero = at::tensor({0.f, 1.f});
  expect_healed(trained(w, [&] { return (w.to(at::kHalf) / zero.to(at::kHalf)).to(at::kFloat).sum(); }),
                Label::div_zero, "aten::div");
  expect_healed(trained(w, [&] { return at::remainder(w, zero).sum() + w.sum(); }), Label::div_zero,
                "aten::remainder");
  expect_healed(trained(w, [&] { return (w * at::pow(zero, -1.0)).sum(); }), Label::div_zero);
  expect_healed(trained(w, [&] { return (w * 1).div_(zero).sum(); }), Label::div_zero, "aten::div_");
  expect_healed(trained(w, [&] { return w.sum() / 0.0; }), Label::div_zero, "aten::div");
}

TEST(DivZero, BesideANumeratorThatIsInfiniteOnPurpose) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f, 3.f})),
                   low = at::tensor({0.f, 0.f, -testing::kInf}, at::kFloat);
  const at::Tensor count = at::tensor({0.f, 1.f, 1.f});
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"low", low}, {"count", count}};
  expect_cause(testing::backward_of(state, [&] { return at::softmax((w * count + low) / count, 0)[1]; }),
               Label::div_zero, "aten::div");
}

/// The derivative of a maximum compares its input with the maximum: a guard of the division is none of its.
TEST(DivZero, OfAMaximumWhoseDerivativeComparesWithIt) {
  const at::Tensor w = leaf(at::tensor({0.f, 0.f, 0.f, 1.f, -2.f, 4.f}).view({2, 3}));
  for (const auto& largest : std::vector<std::function<at::Tensor()>>{
           [&] { return w.abs().amax(1, true); }, [&] { return std::get<0>(w.abs().max(1, true)); }}) {
    const Verdict v = trained(w, [&] {
                        const at::Tensor scale = at::reciprocal(largest()) * 127;
                        return ((w * scale).clamp(-128, 127) / scale).sum();
                      }).verdict();
    EXPECT_EQ(v.cause, Label::div_zero) << v.explanation;
    EXPECT_EQ(v.culprit.op, "aten::reciprocal");
    ASSERT_TRUE(v.fix.has_value()) << v.explanation;
    EXPECT_EQ(v.fix->change, "zeros replaced by one in the denominator of aten::reciprocal");
  }
}

TEST(DivZero, ForeachInTheOptimizer) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f})), v = leaf(at::tensor({1.f}));
  StepState state;
  state.parameters = {{"w", w}, {"v", v}};
  expect_cause(Incident(state,
                        [&] {
                          const at::Tensor loss = (w * at::tensor({0.f, 1.f})).sum() + v.sum();
                          loss.backward();
                          const at::NoGradGuard no_grad;
                          const PhaseScope phase(Phase::optimizer);
                          at::_foreach_div_({v, w}, {v.grad(), w.grad()});
                          return loss;
                        }),
               Label::div_zero, "aten::_foreach_div_");
}

TEST(DivZero, ATemperatureOfZeroIsASettingAndNotDivZero) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f}));
  EXPECT_NE(trained(w, [&] { return at::softmax(w / 0.0, 0).pow(2).sum(); }).finding().label,
            Label::div_zero);
}

TEST(DivZero, LostEpsilonIsNotDivZero) {
  const at::Tensor w = leaf(at::zeros({2, 4}));
  expect_cause(trained(w,
                       [&] {
                         const at::Tensor h = w.to(at::kHalf);
                         const at::Tensor norm = h.pow(2).sum(1, true) + 1e-8;  // 1e-8 is 0 in fp16
                         return (h / norm).to(at::kFloat).sum();
                       }),
               Label::eps_underflow);
}

TEST(DivZero, ASoftmaxByHandOverARowOfMinusInfIsNot) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  at::Tensor closed = at::zeros({2, 3}, at::kBool);
  closed[1].fill_(true);
  expect_cause(trained(w,
                       [&] {
                         const at::Tensor e = at::exp(w.masked_fill(closed, -testing::kInf));
                         return (e / e.sum(1, true)).pow(2).sum();
                       }),
               Label::all_masked_row, "aten::div");
}

TEST(DivZero, ATinyDenominatorIsRangeOverflow) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f}));
  expect_cause(trained(w, [&] { return (w.to(at::kHalf) / (w * 1e-7f).to(at::kHalf)).to(at::kFloat).sum(); }),
               Label::fp16_overflow);
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

/// The infinity is consumed to something finite, and backward multiplies it by 0: the division is at fault.
TEST(DivZero, BehindAFunctionThatSaturates) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f, 3.f})), low = at::tensor({0.f, 1.f, 0.5f});
  for (const auto& f : std::vector<std::function<at::Tensor(const at::Tensor&)>>{
           [](const at::Tensor& x) { return at::atan(x); }, [](const at::Tensor& x) { return at::tanh(x); },
           [](const at::Tensor& x) { return at::sigmoid(x); },
           [](const at::Tensor& x) { return at::exp(-x); }, [](const at::Tensor& x) { return at::erf(x); },
           [](const at::Tensor& x) { return at::erfc(x * 2); },
           [](const at::Tensor& x) { return at::tanh(x * x); },
           [](const at::Tensor& x) { return at::atan(x.to(at::kDouble)).to(at::kFloat); },
           [](const at::Tensor& x) { return at::tanh(x * 40); }}) {
    for (const auto& divided :
         std::vector<std::function<at::Tensor()>>{[&] { return (f(w / (w * low)) - 0.7).pow(2).mean(); },
                                                  [&] { return f(at::reciprocal(w * low)).sum(); }}) {
      w.mutable_grad() = at::Tensor();
      const Verdict v = trained(w, divided).verdict();
      EXPECT_EQ(v.cause, Label::div_zero) << v.culprit.op << ": " << v.explanation;
      EXPECT_EQ(v.phase, Phase::forward) << v.culprit.op;
    }
  }
}

}  // namespace
}  // namespace nanquest
