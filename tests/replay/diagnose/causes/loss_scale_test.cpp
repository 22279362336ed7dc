// LOSS_SCALE: its sample, its variants, and what looks like it and is not.
#include "probe/observe/step_scope.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kInf;
using testing::leaf;

TEST(LossScale, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("loss_scale", {.cause = Label::loss_scale,
                                        .phase = Phase::input,
                                        .op = "aten::mul",
                                        .module = "",
                                        .origin = Origin::loss_scale,
                                        .precision = PrecisionVerdict::not_a_precision_matter});
}

/// A step whose loss is scaled by `scale`; `after` has the gradient.
Finding scaled(const std::function<at::Tensor(const at::Tensor& loss)>& scale,
               const std::function<void(const at::Tensor& w)>& after, StepState state = {}) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f, 3.f})), x = at::tensor({1.f, 0.f, 2.f});
  state.parameters = {{"w", w}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (w * x).pow(2).sum();
    scale(loss).backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    after(w);
    return loss;
  });
  EXPECT_FALSE(incident.doc().culprit.value.empty());
  return incident.finding();
}

TEST(LossScale, AConstantOfInfinity) {
  const Finding f = scaled([](const at::Tensor& loss) { return loss * kInf; }, [](const at::Tensor&) {});
  EXPECT_EQ(f.label, Label::loss_scale) << f.explanation;
}

TEST(LossScale, DrivenToZeroAndTakenOutAgain) {
  const at::Tensor scale = at::zeros({});
  StepState state;
  state.optimizer = {{"scaler.scale", scale}};
  const Finding f = scaled([&](const at::Tensor& loss) { return loss * scale; },
                           [&](const at::Tensor& w) {
                             w.grad().mul_(at::reciprocal(scale));
                             w.sub_(w.grad(), 0.1);
                           },
                           state);
  EXPECT_EQ(f.label, Label::loss_scale) << f.explanation;
}

/// A scale that doubles as an integer wraps to 0. Unscaling divides gradients by it.
TEST(LossScale, AnIntegerThatWrappedToZero) {
  const at::Tensor scale = at::zeros({}, at::kInt);
  const Finding f = scaled([&](const at::Tensor& loss) { return loss * scale; },
                           [&](const at::Tensor& w) {
                             w.grad().div_(scale);
                             w.sub_(w.grad(), 0.1);
                           });
  EXPECT_EQ(f.label, Label::loss_scale) << f.explanation;
}

TEST(LossScale, SoSmallThatItsReciprocalIsInfinite) {
  const at::Tensor scale = at::full({}, 1e-39f);
  StepState state;
  state.optimizer = {{"scaler.scale", scale}};
  const Finding f = scaled([&](const at::Tensor& loss) { return loss * scale; },
                           [&](const at::Tensor& w) {
                             const at::Tensor back = scale.to(at::kDouble).reciprocal().to(at::kFloat);
                             w.grad().mul_(back);
                             w.sub_(w.grad(), 0.1);
                           },
                           state);
  EXPECT_EQ(f.label, Label::loss_scale) << f.explanation;
}

TEST(LossScale, GrownBeyondItsFormat) {
  const at::Tensor scale = at::full({}, 40000.f).to(at::kHalf);
  StepState state;
  state.optimizer = {{"scaler.scale", scale}};
  const Finding f = scaled([&](const at::Tensor& loss) { return loss * scale.to(at::kFloat); },
                           [&](const at::Tensor& w) {
                             w.grad().div_(scale.to(at::kFloat));
                             w.sub_(w.grad(), 0.1);
                             scale.mul_(2.0);
                           },
                           state);
  EXPECT_EQ(f.label, Label::loss_scale) << f.explanation;
}

TEST(LossScale, GradientsThatOverflowUnderAFiniteScaleAreNot) {
  const at::Tensor w = leaf(at::full({3}, 1.f));
  StepState state;
  state.loss_scale = 65536;
  state.parameters = {{"w", w}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (w.to(at::kHalf) * 300).to(at::kFloat).sum();
    (loss * 65536.0 / 300).backward();
    return loss;
  });
  EXPECT_EQ(incident.finding().label, Label::fp16_overflow);
}

/// A loss of about 2e38 that the step multiplies by a factor, and leaves fp32.
Finding multiplied(double size, double factor) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f}));
  return testing::trained(w, [=] { return (w * size).sum() * factor; }).finding();
}

TEST(LossScale, AFactorThatNoScalerUsesIs) {
  const Finding f = multiplied(1, 1.5e38);
  EXPECT_EQ(f.label, Label::loss_scale) << f.explanation;
  EXPECT_NE(f.explanation.find("aten::mul multiplies it by 1.5"), std::string::npos) << f.explanation;
  EXPECT_EQ(f.explanation.find("next loss scale"), std::string::npos) << f.explanation;
}

TEST(LossScale, AHugeLossTimesAnOrdinaryFactorIsNot) {
  const Finding f = multiplied(7e37, 4);
  EXPECT_EQ(f.label, Label::fp16_overflow) << f.explanation;
}

TEST(LossScale, AnInfiniteLossIsNot) {
  const at::Tensor w = leaf(at::tensor({0.f, 2.f})), scale = at::full({}, 1024.f);
  StepState state;
  state.parameters = {{"w", w}};
  state.optimizer = {{"scaler.scale", scale}};
  const Incident incident(state, [&] {
    const at::Tensor loss = at::log(w).sum();
    (loss * scale).backward();
    return loss;
  });
  EXPECT_EQ(incident.finding().label, Label::log_zero);
}

TEST(LossScale, AnotherStateOfInfinityIsNot) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f})), moment = at::full({2}, kInf).to(at::kFloat);
  StepState state;
  state.parameters = {{"w", w}};
  state.optimizer = {{"moment", moment}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (w * w).sum();
    (loss * 8.0).backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    w.sub_(moment * w.grad());
    return loss;
  });
  EXPECT_EQ(incident.finding().label, Label::bad_state);
}

}  // namespace
}  // namespace nanquest
