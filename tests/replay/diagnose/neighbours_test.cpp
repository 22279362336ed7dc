// Failures that look like an implemented cause and are not: each must end in UNKNOWN, never in a wrong label.
#include "tests/replay/diagnose/incident.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kInf;
using testing::leaf;

/// The label and, for UNKNOWN, what it says it resembles.
void expect_unknown(const Incident& incident, const std::string& resembles) {
  ASSERT_FALSE(incident.doc().culprit.value.empty()) << "the step should hold something harmful";
  const Finding f = incident.finding();
  EXPECT_EQ(f.label, "UNKNOWN") << f.explanation;
  EXPECT_NE(f.explanation.find(resembles), std::string::npos) << f.explanation;
}

TEST(Neighbours, ExpOfTooMuchIsNotFp16Overflow) {
  const at::Tensor w = leaf(at::full({4}, 12.f));
  expect_unknown(Incident({},
                          [&] {
                            at::Tensor loss = at::exp(w.to(at::kHalf)).to(at::kFloat).mean();
                            loss.backward();
                            return loss;
                          }),
                 "EXP_OVERFLOW");
}

TEST(Neighbours, MaskConstantLeavingTheRangeIsNotFp16Overflow) {
  const at::Tensor scores = leaf(at::full({2, 3}, -40.f));
  at::Tensor mask = at::zeros({2, 3}, at::kHalf);
  mask.select(0, 1).fill_(
      -65504.f);  // finfo.min, on the whole row: with anything negative added it leaves the range
  expect_unknown(Incident({},
                          [&] {
                            const at::Tensor masked = scores.to(at::kHalf) + mask;
                            at::Tensor loss = at::softmax(masked.to(at::kFloat), 1).sum();
                            loss.backward();
                            return loss;
                          }),
                 "MASK_OVERFLOW");
}

TEST(Neighbours, InfiniteLogitIsNotAllMaskedRow) {
  const at::Tensor w = leaf(at::ones({2, 3}));
  at::Tensor shift = at::zeros({2, 3});
  shift[0][1] = kInf;
  StepState state;
  expect_unknown(Incident(state,
                          [&] {
                            at::Tensor loss = at::softmax(w + shift, 1).pow(2).sum();
                            loss.backward();
                            return loss;
                          }),
                 "");
}

TEST(Neighbours, LogOfNegativeIsNotLogZero) {
  const at::Tensor w = leaf(at::tensor({0.f, -0.5f, 0.5f}));
  expect_unknown(Incident({},
                          [&] {
                            at::Tensor loss = at::log(w).mean();
                            loss.backward();
                            return loss;
                          }),
                 "DOMAIN");
}

TEST(Neighbours, LostEpsilonIsNotDivZero) {
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

TEST(Neighbours, UnselectedBranchIsNotSingularGrad) {
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

TEST(Neighbours, ZeroOverZeroInBackwardIsNotDivZero) {
  const at::Tensor w = leaf(at::tensor({0.f, 2.f}));
  StepState state;
  state.parameters = {{"w", w}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (at::sqrt(w) * at::tensor({0.f, 1.f})).sum();
    loss.backward();
    return loss;
  });
  EXPECT_NE(incident.finding().label, "DIV_ZERO");
}

TEST(Neighbours, IntermediateOverflowThatCancelsIsNotFp16Overflow) {
  // fp64 cannot hold 1e308 · 10 either: no 16-bit format is involved at all.
  const at::Tensor w = leaf(at::full({2}, 1e308, at::kDouble));
  expect_unknown(Incident({},
                          [&] {
                            const at::Tensor loss = (w * 10.0).sum();
                            loss.backward();
                            return loss;
                          }),
                 "");
}

TEST(Neighbours, Bf16OverflowIsNotFp16Overflow) {
  const at::Tensor w = leaf(at::full({2}, 3e38f));
  expect_unknown(Incident({},
                          [&] {
                            const at::Tensor loss = (w.to(at::kBFloat16) * 4).to(at::kFloat).sum();
                            loss.backward();
                            return loss;
                          }),
                 "");
}

}  // namespace
}  // namespace nanquest
