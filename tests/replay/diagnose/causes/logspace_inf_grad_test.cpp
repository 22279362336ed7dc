// LOGSPACE_INF_GRAD: its sample, its variants, and what looks like it and is not.
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::found_in;
using testing::Incident;
using testing::kInf;
using testing::leaf;

/// No fix of it can be verified yet: both differences of the derivative go wrong, and they are mended one by
/// one.
TEST(LogspaceInfGrad, ItsSampleIsExplained) {
  const Verdict v = testing::sample_verdict("logspace_inf_grad", 1);
  EXPECT_EQ(v.cause, Label::logspace_inf_grad) << v.explanation;
  EXPECT_EQ(v.phase, Phase::backward);
  EXPECT_EQ(v.culprit.op, "aten::sub");
  EXPECT_EQ(v.culprit.module, "alignment");
  EXPECT_TRUE(v.reproduction.bit_exact);
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::structural);
}

at::Tensor a_closed_row() {
  at::Tensor mask = at::zeros({3, 4}, at::kBool);
  mask[1].fill_(true);
  mask[2][0] = true;
  return mask;
}

TEST(LogspaceInfGrad, LogsumexpAndItsKindInSeveralFormats) {
  const at::Tensor w = leaf(at::randn({3, 4})), mask = a_closed_row();
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kDouble}) {
    const Finding f = found_in(w, [&] {
      const at::Tensor x = w.to(type) + at::zeros({3, 4}).to(type).masked_fill(mask, -kInf);
      const at::Tensor both = at::logaddexp(x.select(1, 0), x.select(1, 1));
      return at::where(at::isfinite(both), both, at::zeros_like(both)).to(at::kFloat).sum();
    });
    EXPECT_EQ(f.label, Label::logspace_inf_grad) << f.explanation;
  }
}

TEST(LogspaceInfGrad, AMaximumTakenAwayByHand) {
  const at::Tensor w = leaf(at::randn({3, 4})), mask = a_closed_row();
  const Finding f = found_in(w, [&] {
    const at::Tensor x = w.masked_fill(mask, -kInf);
    const at::Tensor m = at::amax(x, 1, true);
    return (at::exp(x - m).sum(1, true).log() + m).sum();
  });
  EXPECT_EQ(f.label, Label::logspace_inf_grad) << f.explanation;
}

TEST(LogspaceInfGrad, EmptyPartsThatAreMerged) {
  // Two parts of an attention, each with its own maximum and sum: in row 1 both saw nothing.
  const at::Tensor w = leaf(at::randn({3, 4})), mask = a_closed_row();
  const Finding f = found_in(w, [&] {
    const at::Tensor x = w.masked_fill(mask, -kInf);
    const at::Tensor m1 = at::amax(x.narrow(1, 0, 2), 1), m2 = at::amax(x.narrow(1, 2, 2), 1);
    const at::Tensor m = at::maximum(m1, m2);
    return (at::exp(m1 - m) * 2 + at::exp(m2 - m) * 3).sum();
  });
  EXPECT_EQ(f.label, Label::logspace_inf_grad) << f.explanation;
}

TEST(LogspaceInfGrad, TheLogOfASumOfNothing) {
  const at::Tensor w = leaf(at::randn({3, 4})), mask = a_closed_row();
  const Finding f = found_in(w, [&] {
    const at::Tensor x = w.masked_fill(mask, -kInf);
    return at::sigmoid(at::exp(x).sum(1).log()).sum() + at::logsumexp(at::exp(x).sum(1).log(), 0);
  });
  EXPECT_TRUE(f.label == Label::logspace_inf_grad || f.label == Label::unknown) << f.explanation;
}

TEST(LogspaceInfGrad, ASoftmaxByHandIsNot) {
  const at::Tensor w = leaf(at::randn({3, 4})), mask = a_closed_row();
  const Finding f = found_in(w, [&] {
    const at::Tensor x = w.masked_fill(mask, -kInf);
    const at::Tensor e = at::exp(x - at::amax(x, 1, true));
    return (e / e.sum(1, true)).pow(2).sum();
  });
  EXPECT_NE(f.label, Label::logspace_inf_grad) << f.explanation;
}

TEST(LogspaceInfGrad, AMaskTakenFromAMaskIsNot) {
  const at::Tensor w = leaf(at::zeros({4}));
  at::Tensor mask = at::zeros({4});
  mask[1] = kInf;
  const Finding f = found_in(w, [&] { return at::softmax((w - mask) + mask, 0).pow(2).sum(); });
  EXPECT_NE(f.label, Label::logspace_inf_grad) << f.explanation;
}

TEST(LogspaceInfGrad, ARootAtZeroIsNot) {
  const at::Tensor w = leaf(at::tensor({0.f, 4.f}));
  EXPECT_EQ(found_in(w, [&] { return at::sqrt(w).sum(); }).label, Label::singular_grad);
}

}  // namespace
}  // namespace nanquest
