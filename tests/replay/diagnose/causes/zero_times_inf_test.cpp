// ZERO_TIMES_INF: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::kInf;
using testing::leaf;
using testing::trained;

TEST(ZeroTimesInf, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("zero_times_inf", {.cause = Label::zero_times_inf,
                                            .phase = Phase::forward,
                                            .op = "aten::mul",
                                            .module = "loss",
                                            .precision = PrecisionVerdict::structural,
                                            .poison = {3}});
}

at::Tensor table() {
  at::Tensor t = at::zeros({3, 3});
  t[1][2] = -kInf;
  return t;
}

TEST(ZeroTimesInf, InsideAMatrixProduct) {
  const at::Tensor w = leaf(at::randn({2, 3})), costs = table();
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"costs", costs}};
  expect_healed(testing::backward_of(state,
                                     [&] {
                                       const at::Tensor chosen = at::relu(w - 100);  // nothing is chosen: 0
                                       return at::mm(chosen, costs).sum() + w.sum();
                                     }),
                Label::zero_times_inf, "aten::mm");
}

TEST(ZeroTimesInf, BatchedInHalf) {
  const at::Tensor w = leaf(at::randn({1, 2, 3})), costs = table().to(at::kHalf);
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"costs", costs}};
  expect_healed(testing::backward_of(state,
                                     [&] {
                                       const at::Tensor chosen = at::relu(w - 100).to(at::kHalf);
                                       return at::bmm(chosen, costs.unsqueeze(0)).to(at::kFloat).sum();
                                     }),
                Label::zero_times_inf, "aten::bmm");
}

TEST(ZeroTimesInf, AMaskTimesMinusInf) {
  const at::Tensor w = leaf(at::randn({2, 3})), hidden = at::zeros({2, 3});
  hidden[1].fill_(0);
  hidden[0][1] = 1;
  expect_healed(trained(w, [&] { return at::softmax(w + hidden * -kInf, 1).pow(2).sum(); }),
                Label::zero_times_inf, "aten::mul");
}

TEST(ZeroTimesInf, AnOverflowedFactorIsRangeOverflow) {
  const at::Tensor w = leaf(at::full({2}, 300.f));
  expect_cause(trained(w,
                       [&] {
                         const at::Tensor h = w.to(at::kHalf);
                         return ((h * h) * at::zeros({2}, at::kHalf)).to(at::kFloat).sum();
                       }),
               Label::fp16_overflow, "aten::mul");
}

/// sqrt(n / 0) of a silent segment, which a product with that segment makes NaN of; what follows is complex.
TEST(ZeroTimesInf, AnInfinityThatADivisionMadeIsTheDivisionsFault) {
  const at::Tensor w = leaf(at::rand({5, 8})), wave = at::rand({2, 8}), window = at::hann_window(8);
  wave[1].zero_();
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"wave", wave}};
  const auto loudness = [&] { return at::sqrt(at::reciprocal(wave.square().sum(1, true)) * 8); };
  expect_healed(testing::backward_of(state,
                                     [&] {
                                       const at::Tensor loud = at::fft_rfft(wave * loudness() * window);
                                       return (loud.abs() * w.select(1, 0)).mean();
                                     }),
                Label::div_zero, "aten::reciprocal");
  expect_healed(testing::backward_of(state,
                                     [&] {
                                       const at::Tensor factor = loudness();
                                       return (wave * factor * w.select(0, 0) / factor).mean();
                                     }),
                Label::div_zero, "aten::reciprocal");
}

TEST(ZeroTimesInf, DifferenceOfInfinitiesIsNot) {
  const at::Tensor w = leaf(at::randn({3})), low = at::full({3}, -kInf);
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"low", low}};
  EXPECT_NE(testing::backward_of(state, [&] { return ((w + low) - low).sum(); }).finding().label,
            Label::zero_times_inf);
}

TEST(ZeroTimesInf, AQuotientOfZerosIsDivZero) {
  const at::Tensor w = leaf(at::zeros({3}));
  expect_cause(trained(w, [&] { return (w / at::zeros({3})).sum(); }), Label::div_zero);
}

}  // namespace
}  // namespace nanquest
