// INFEASIBLE_TARGET: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_healed;
using testing::kInf;
using testing::leaf;
using testing::trained;

TEST(InfeasibleTarget, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("infeasible_target", {.cause = Label::infeasible_target,
                                               .phase = Phase::forward,
                                               .op = "aten::_ctc_loss",
                                               .module = "ctc",
                                               .precision = PrecisionVerdict::structural,
                                               .poison = {1}});
}

at::Tensor ctc(const at::Tensor& logits, const at::Tensor& targets, at::IntArrayRef inputs,
               at::IntArrayRef lengths) {
  return at::ctc_loss(at::log_softmax(logits, 2), targets, inputs, lengths);
}

TEST(InfeasibleTarget, LongerThanTheInput) {
  const at::Tensor w = leaf(at::randn({4, 2, 5}));
  const at::Tensor targets = at::tensor({1, 2, 3, 1, 2, 3}, at::kLong).view({2, 3});
  expect_healed(trained(w,
                        [&] {
                          return ctc(w, targets, {4, 2}, {3, 3});
                        }),
                Label::infeasible_target, "aten::_ctc_loss");
}

TEST(InfeasibleTarget, EqualLabelsNeedBlanks) {
  const at::Tensor w = leaf(at::randn({3, 2, 5}));
  const at::Tensor targets = at::tensor({1, 1, 1, 1, 2}, at::kLong);  // joined: [1 1 1] and [1 2]
  const Finding f = trained(w, [&] { return ctc(w, targets, {3, 3}, {3, 2}); }).finding();
  EXPECT_EQ(f.label, Label::infeasible_target) << f.explanation;
  EXPECT_EQ(f.poison, (std::vector<std::int64_t>{0}));
  EXPECT_NE(f.explanation.find("needs 5 steps"), std::string::npos) << f.explanation;
}

TEST(InfeasibleTarget, LengthsAsTensors) {
  const at::Tensor w = leaf(at::randn({4, 2, 5}));
  const at::Tensor targets = at::tensor({1, 2, 3, 1, 2, 3}, at::kLong).view({2, 3});
  expect_healed(trained(w,
                        [&] {
                          return at::ctc_loss(at::log_softmax(w, 2), targets, at::tensor({4, 2}, at::kLong),
                                              at::tensor({3, 3}, at::kLong));
                        }),
                Label::infeasible_target, "aten::_ctc_loss");
}

TEST(InfeasibleTarget, AClassThatIsMasked) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  at::Tensor closed = at::zeros({2, 3}, at::kBool);
  closed[1][2] = true;
  const at::Tensor target = at::tensor({0, 2}, at::kLong);
  expect_healed(trained(w, [&] { return at::cross_entropy_loss(w.masked_fill(closed, -kInf), target); }),
                Label::infeasible_target, "aten::nll_loss_forward");
}

TEST(InfeasibleTarget, NothingButIgnoredTargetsIsEmptyReduction) {
  const at::Tensor w = leaf(at::randn({2, 3}));
  const at::Tensor target = at::full({2}, -100, at::kLong);
  expect_cause(trained(w, [&] { return at::cross_entropy_loss(w, target); }), Label::empty_reduction);
}

TEST(InfeasibleTarget, AFeasibleTargetOfProbabilityZeroIsNot) {
  const at::Tensor w = leaf(at::randn({4, 1, 3}));
  at::Tensor never = at::zeros({4, 1, 3}, at::kBool);
  never.select(2, 1).fill_(true);
  EXPECT_NE(trained(w,
                    [&] {
                      return ctc(w.masked_fill(never, -kInf), at::ones({1, 1}, at::kLong), {4}, {1});
                    })
                .finding()
                .label,
            Label::infeasible_target);
}

TEST(InfeasibleTarget, AnUnderflowedProbabilityIsLogZero) {
  const at::Tensor w = leaf(at::tensor({200.f, 0.f}).view({1, 2}));
  const at::Tensor target = at::ones({1}, at::kLong);
  expect_cause(trained(w, [&] { return at::nll_loss(at::log(at::softmax(w, 1)), target); }), Label::log_zero,
               "aten::log");
}

}  // namespace
}  // namespace nanquest
