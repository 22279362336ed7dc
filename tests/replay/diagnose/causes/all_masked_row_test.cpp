// ALL_MASKED_ROW: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::Incident;
using testing::kInf;
using testing::leaf;
using testing::trained;

TEST(AllMaskedRow, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("all_masked_row", {.cause = Label::all_masked_row,
                                            .phase = Phase::forward,
                                            .op = "aten::_softmax",
                                            .module = "attention",
                                            .precision = PrecisionVerdict::structural,
                                            .poison = {2}});
}

at::Tensor closed_row(at::IntArrayRef shape = {2, 3}) {
  at::Tensor closed = at::zeros(shape, at::kBool);
  closed.select(0, 1).fill_(true);
  return closed;
}

TEST(AllMaskedRow, ByMaskedFillWhereAndAddition) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  const at::Tensor closed = closed_row();
  expect_healed(trained(w, [&] { return at::softmax(w.masked_fill(closed, -kInf), 1).pow(2).sum(); }),
                Label::all_masked_row, "aten::_softmax");
  expect_healed(trained(w, [&] { return at::log_softmax(at::where(closed, -kInf, w), 1).sum(); }),
                Label::all_masked_row, "aten::_log_softmax");
  const at::Tensor bias = at::zeros({2, 3}, at::kHalf).masked_fill(closed, -kInf);
  expect_healed(
      trained(w, [&] { return at::softmax(w.to(at::kHalf) + bias, 1).pow(2).to(at::kFloat).sum(); }),
      Label::all_masked_row, "aten::_softmax");
}

TEST(AllMaskedRow, WrittenByHand) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  const at::Tensor closed = closed_row();
  expect_healed(trained(w,
                        [&] {
                          const at::Tensor x = w.masked_fill(closed, -kInf);
                          const at::Tensor e = at::exp(x - at::amax(x, {1}, true));
                          return (e / e.sum(1, true)).pow(2).sum();
                        }),
                Label::all_masked_row, "aten::sub");
  expect_healed(trained(w,
                        [&] {
                          const at::Tensor x = w.masked_fill(closed, -kInf);
                          return (x - std::get<0>(at::max(x, 1, true))).exp().pow(2).sum();
                        }),
                Label::all_masked_row, "aten::sub");
  expect_healed(trained(w,
                        [&] {
                          const at::Tensor e = at::exp(w.masked_fill(closed, -kInf));
                          return (e / e.sum(1, true)).pow(2).sum();
                        }),
                Label::all_masked_row, "aten::div");
}

TEST(AllMaskedRow, InTorchsAttention) {
  const at::Tensor w = leaf(at::randn({1, 2, 4, 8}));
  at::Tensor bias = at::zeros({1, 1, 4, 4});
  bias.select(2, 1).fill_(-kInf);
  const Incident incident = trained(
      w, [&] { return std::get<0>(at::_scaled_dot_product_attention_math(w, w, w, bias)).pow(2).sum(); });
  if (!incident.doc().culprit.value.empty()) expect_cause(incident, Label::all_masked_row);
}

TEST(AllMaskedRow, TheDifferenceOfTwoMeantInfinitiesIsNot) {
  const at::Tensor w = leaf(at::randn({3})), low = at::full({3}, -kInf);
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"low", low}};
  EXPECT_NE(testing::backward_of(state, [&] { return ((w + low) - low).sum(); }).finding().label,
            Label::all_masked_row);
}

TEST(AllMaskedRow, AQuotientOfZerosThatNoExponentialMadeIsDivZero) {
  const at::Tensor w = leaf(at::zeros({2, 3}));
  expect_cause(trained(w, [&] { return (w / w.sum(1, true)).sum(); }), Label::div_zero);
}

TEST(AllMaskedRow, AnInfinityFromOutsideIsBadDataAndNotAllMaskedRow) {
  const at::Tensor w = leaf(at::ones({2, 3}));
  at::Tensor shift = at::zeros({2, 3});
  shift[0][1] = kInf;
  const Finding f = Incident({}, [&] {
                      at::Tensor loss = at::softmax(w + shift, 1).pow(2).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_EQ(f.label, Label::bad_data) << f.explanation;
}

TEST(AllMaskedRow, InfiniteLogitIsNotAllMaskedRow) {
  const at::Tensor w = leaf(at::ones({2, 3}));
  at::Tensor force = at::zeros({2, 3}, at::kBool);
  force[0][1] = true;
  expect_cause(trained(w, [&] { return at::softmax(w.masked_fill(force, kInf), 1).pow(2).sum(); }),
               Label::inf_logit);
}

}  // namespace
}  // namespace nanquest
