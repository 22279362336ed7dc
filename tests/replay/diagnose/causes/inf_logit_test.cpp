// INF_LOGIT: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::kInf;
using testing::leaf;
using testing::trained;

TEST(InfLogit, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("inf_logit", {.cause = Label::inf_logit,
                                       .phase = Phase::forward,
                                       .op = "aten::binary_cross_entropy_with_logits",
                                       .module = "loss",
                                       .precision = PrecisionVerdict::structural,
                                       .poison = {4}});
}

/// A shift of zeros with one +Inf.
at::Tensor shift(at::ScalarType type = at::kFloat) {
  at::Tensor s = at::zeros({2, 3}, type);
  s[0][1] = kInf;
  return s;
}

TEST(InfLogit, SoftmaxAndLogSoftmaxOfPlusInf) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  const at::Tensor force = at::isinf(shift());
  expect_healed(trained(w, [&] { return at::softmax(w.masked_fill(force, kInf), 1).pow(2).sum(); }),
                Label::inf_logit, "aten::_softmax");
  expect_healed(trained(w, [&] { return at::log_softmax(w.masked_fill(force, kInf), 1).sum(); }),
                Label::inf_logit, "aten::_log_softmax");
}

TEST(InfLogit, LessTheirOwnLogsumexp) {
  // torch.distributions.Categorical(logits=…).
  const at::Tensor w = leaf(at::randn({2, 3}));
  const at::Tensor force = at::isinf(shift());
  expect_healed(trained(w,
                        [&] {
                          const at::Tensor logits = w.masked_fill(force, kInf);
                          return (logits - logits.logsumexp(-1, true)).select(1, 1).sum();
                        }),
                Label::inf_logit, "aten::sub");
}

TEST(InfLogit, InHalfAndWithPositionWeights) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  const at::Tensor force = at::isinf(shift());
  expect_healed(trained(w,
                        [&] {
                          const at::Tensor logits = w.to(at::kHalf).masked_fill(force, kInf);
                          return at::softmax(logits, 1).to(at::kFloat).pow(2).sum();
                        }),
                Label::inf_logit, "aten::_softmax");
  expect_healed(trained(w,
                        [&] {
                          return at::binary_cross_entropy_with_logits(
                              w.masked_fill(force, -kInf), at::zeros({2, 3}), {}, at::full({3}, 2.f));
                        }),
                Label::inf_logit);
}

TEST(InfLogit, ARowOfMinusInfIsAllMaskedRow) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  at::Tensor closed = at::zeros({2, 3}, at::kBool);
  closed[1].fill_(true);
  expect_cause(trained(w, [&] { return at::softmax(w.masked_fill(closed, -kInf), 1).pow(2).sum(); }),
               Label::all_masked_row);
}

TEST(InfLogit, ALogitThatOverflowedIsRangeOverflow) {
  const at::Tensor w = leaf(at::full({2, 3}, 300.f));
  expect_cause(trained(w,
                       [&] {
                         const at::Tensor h = w.to(at::kHalf);
                         return at::softmax((h * h).to(at::kFloat), 1).pow(2).sum();
                       }),
               Label::fp16_overflow, "aten::mul");
}

TEST(InfLogit, ALossOverAllClassesCantDoWithoutTheMaskedOnes) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  at::Tensor closed = at::zeros({2, 3}, at::kBool);
  closed[1][2] = true;
  const at::Tensor target = at::tensor({0, 1}, at::kLong);
  const auto loss = [&](double smoothing) {
    return [=] {
      return at::cross_entropy_loss(w.masked_fill(closed, -kInf), target, {}, at::Reduction::Mean, -100,
                                    smoothing);
    };
  };
  expect_healed(trained(w, loss(0.1)), Label::inf_logit, "aten::_log_softmax");
  EXPECT_FALSE(trained(w, loss(0)).verdict().found);
}

TEST(InfLogit, ATargetOnAMaskedClassIsInfeasible) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  at::Tensor closed = at::zeros({2, 3}, at::kBool);
  closed[1][2] = true;
  const at::Tensor target = at::tensor({0, 2}, at::kLong);
  expect_cause(trained(w, [&] { return at::cross_entropy_loss(w.masked_fill(closed, -kInf), target); }),
               Label::infeasible_target, "aten::nll_loss_forward");
}

}  // namespace
}  // namespace nanquest
