// What is to blame is tried: neutralised suspects, intended infinities, several at once.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "replay/blame/harm.h"
#include "tests/replay/diagnose/incident.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kInf;
using testing::kNaN;
using testing::leaf;

/// "aten::log (forward) in head", and so on for every member of the set.
std::string blamed(const Incident& incident) {
  const Case c = incident.make();
  std::string text;
  for (const Suspect& s : c.blame().set)
    text += (text.empty() ? "" : ", ") + c.graph().op(s.op).name + " (" +
            std::string(phase_name(c.graph().op(s.op).phase)) + ")" + (s.row ? " read" : "");
  return text;
}

at::Tensor with_backward(const at::Tensor& loss) {
  loss.backward();
  return loss;
}

TEST(Blame, TheFirstOfTwoIsNamedWhereEitherWouldDo) {
  // Neither alone is enough: both are to blame, the earlier one is the culprit.
  const at::Tensor x = leaf(at::tensor({0.0f, 1.0f})), y = leaf(at::tensor({-1.0f, 1.0f}));
  const Incident incident({}, [&] {
    const at::Tensor first = at::reciprocal(x).sum();
    return with_backward(first + at::log(y).sum());
  });
  EXPECT_EQ(blamed(incident), "aten::reciprocal (forward), aten::log (forward)");
  EXPECT_EQ(incident.make().op()->name, "aten::reciprocal");
}

TEST(Blame, WhatPassesThroughIsNotNamed) {
  const at::Tensor y = leaf(at::tensor({-1.0f, 1.0f}));
  const Incident incident({}, [&] { return with_backward(((at::log(y) * 2 + 1).exp() * 3).sum()); });
  EXPECT_EQ(blamed(incident), "aten::log (forward)");
}

TEST(Blame, AnInfinityThatSoftmaxCouldUseIsToBlameWhereNothingElseIs) {
  // A softmax gives -Inf the weight 0, so it might be meant; but here it is the logit of the right class.
  const at::Tensor x = leaf(at::tensor({-1.f, 1.f, 2.f, 1.f, 2.f, 3.f}).view({2, 3}));
  const at::Tensor classes = at::tensor({0, 1}, at::kLong);
  const Incident incident(
      {}, [&] { return with_backward(at::cross_entropy_loss(at::log(at::relu(x)), classes)); });
  EXPECT_EQ(blamed(incident), "aten::log (forward)");
  EXPECT_TRUE(incident.make().blame().intended.empty());
}

TEST(Blame, AnOverflowThatForwardHidesIsToBlameForItsDerivatives) {
  // A decay rate of exp(100): exp(-Inf) is 0, as it would be of a finite rate; backward multiplies 0 by Inf,
  // twice.
  const at::Tensor rate = leaf(at::tensor({100.f, 1.f})), x = leaf(at::rand({3, 2})),
                   y = leaf(at::rand({3, 2}));
  StepState state;
  state.parameters = {{"rate", rate}, {"x", x}, {"y", y}};
  const Incident incident(state, [&] {
    const at::Tensor decay = rate.exp().neg();
    return with_backward(((x * decay).exp() + (y * decay).exp()).sum());
  });
  EXPECT_EQ(blamed(incident), "aten::exp (forward)");
}

TEST(Blame, AMaskInEveryLayerIsNoMoreToBlameThanInOne) {
  // A node without neighbours: all of its scores are masked, in both layers.
  const at::Tensor w = leaf(at::randn({3, 3})),
                   allowed = at::tensor({1, 1, 0, 1, 1, 0, 0, 0, 0}).view({3, 3});
  const auto layer = [&](const at::Tensor& h) {
    const at::Tensor scores = at::mm(h, h.t());
    return at::mm(at::softmax(at::where(allowed > 0, scores, at::ones_like(scores) * -kInf), -1), h);
  };
  const Incident incident({}, [&] { return with_backward(layer(layer(w)).sum()); });
  EXPECT_EQ(blamed(incident), "aten::_softmax (forward), aten::_softmax (forward)");
}

TEST(Blame, WhatCameThroughTheHostCameAfterWhatMadeIt) {
  // The deviation of a single return is NaN; half of the program goes on with the tensor, half with the
  // number in it.
  const at::Tensor w = leaf(at::ones({1})), returns = at::ones({1});
  const Incident incident({}, [&] {
    const at::Tensor scaled = returns / returns.std();
    const at::Tensor again = at::tensor({scaled.item<float>()});
    return with_backward((w * scaled).sum() + (w - again).square().sum());
  });
  EXPECT_EQ(blamed(incident).find("aten::std (forward), "), 0u) << blamed(incident);
  EXPECT_EQ(incident.make().op()->name, "aten::std");
  // And it is what the run itself says, before anything was replayed.
  const SnapshotDoc& doc = incident.doc();
  EXPECT_EQ(doc.ops[static_cast<std::size_t>(doc.culprit.op)].name, "aten::std") << describe_culprit(doc);
}

TEST(Blame, AMaskedScoreIsInnocentBesideANaN) {
  const at::Tensor scores = leaf(at::randn({2, 4})), bad = leaf(at::full({2, 1}, -1.0f));
  const at::Tensor mask = at::tensor({0, 0, 1, 1}).to(at::kBool);
  const Incident incident({}, [&] {
    const at::Tensor masked = scores.masked_fill(mask, -kInf);
    return with_backward((at::softmax(masked, 1) * at::sqrt(bad)).sum());
  });
  EXPECT_EQ(blamed(incident), "aten::sqrt (forward)");
}

TEST(Blame, AnAdditiveMaskFromOutsideIsInnocent) {
  const at::Tensor scores = leaf(at::randn({2, 3}));
  const at::Tensor mask = at::tensor({-kInf, -kInf, -kInf, 0.0, 0.0, -kInf}).to(at::kFloat).view({2, 3});
  const Incident incident({}, [&] { return with_backward(at::softmax(scores + mask, 1).sum()); });
  EXPECT_EQ(blamed(incident), "aten::_softmax (forward)");
}

TEST(Blame, AnInfinityInTheBatchThatIsNoMaskIsTheBatchsFault) {
  const at::Tensor w = leaf(at::ones({3, 2}));
  const at::Tensor pixels = at::tensor({0.5, -kInf, 0.25, 1.0, 2.0, 3.0}).to(at::kFloat).view({2, 3});
  StepState state;
  state.batch = {{"pixels", pixels}};
  state.parameters = {{"w", w}};
  const Incident incident(state, [&] { return with_backward(at::tanh(at::mm(pixels, w)).sum()); });
  EXPECT_EQ(blamed(incident), "aten::mm (forward) read");
  EXPECT_EQ(incident.make().culprit().origin, "input");
}

TEST(Blame, WhoSetsARowOfABadTableOnlyPassesBy) {
  const at::Tensor w = leaf(at::ones({2, 3})), table = at::full({4, 3}, kNaN);
  StepState state;
  state.parameters = {{"w", w}};
  state.buffers = {{"table", table}};
  const Incident incident(state, [&] {
    table.index_put_({at::tensor({0, 1}, at::kLong)}, w.detach());
    return with_backward((w + table.index({at::tensor({1, 3}, at::kLong)})).square().sum());
  });
  EXPECT_EQ(blamed(incident), "aten::index (forward) read");
  EXPECT_EQ(incident.make().culprit().tensor_name, "table");
}

TEST(Blame, WhoChangesABadTableInPlaceReadsIt) {
  const at::Tensor w = leaf(at::ones({2, 3})), table = at::full({2, 3}, kNaN);
  StepState state;
  state.parameters = {{"w", w}};
  state.buffers = {{"table", table}};
  const Incident incident(state, [&] {
    table.mul_(0.9).add_(w.detach(), 0.1);
    return with_backward((w + table).square().sum());
  });
  EXPECT_EQ(blamed(incident), "aten::mul_ (forward) read");
}

TEST(Blame, ALogSpaceZeroIsIntendedAndWhatBackwardMakesOfItIsNot) {
  // log(0) is a weight of zero to logsumexp; only the row in which nothing else is left goes wrong.
  const at::Tensor p = leaf(at::tensor({0.0f, 0.0f, 0.0f, 0.5f}).view({2, 2}));
  const at::Tensor keep = at::tensor({0.0f, 1.0f});
  StepState state;
  state.parameters = {{"p", p}};
  const Incident incident(state, [&] {
    const at::Tensor z = at::logsumexp(at::log(p), {1});
    return with_backward((at::where(at::isinf(z), at::zeros_like(z), z) * keep).sum());
  });
  const Case c = incident.make();
  ASSERT_FALSE(c.blame().set.empty());
  EXPECT_EQ(c.graph().op(c.blame().set.front().op).phase, Phase::backward) << blamed(incident);
}

TEST(Blame, ALogOfZeroThatNobodyMakesFiniteIsTheCulprit) {
  const at::Tensor p = leaf(at::tensor({0.0f, 0.5f})), t = at::tensor({0.0f, 1.0f});
  const Incident incident({}, [&] { return with_backward(-(t * at::log(p)).sum()); });
  EXPECT_EQ(blamed(incident), "aten::log (forward)");
}

TEST(Blame, AnOverflowThatIsThrownAwayIsInnocentIfNoFormatHoldsIt) {
  // `where` takes the other branch. exp(900) is infinite in fp64 too: 0 · Inf in backward is the fault.
  // exp(200) is a number there: it left the range of fp32, whatever became of it.
  for (const auto& [argument, op] :
       {std::pair{900.0f, "aten::mul (backward)"}, {200.0f, "aten::exp (forward)"}}) {
    const at::Tensor x = leaf(at::tensor({argument, 1.0f}));
    StepState state;
    state.parameters = {{"x", x}};
    const Incident incident(state, [&] { return with_backward(at::where(x > 88, x, at::exp(x)).sum()); });
    EXPECT_EQ(blamed(incident), op) << argument;
  }
}

TEST(Blame, AnOverflowHiddenAsZeroIsBlamedForTheDivisionByIt) {
  // 300² overflows fp16, its reciprocal becomes 0, and 1 / 0 is what everybody sees.
  const at::Tensor w = leaf(at::full({3}, 300.0f));
  const Incident incident({}, [&] {
    const at::Tensor h = w.to(at::kHalf);
    return with_backward(at::log(at::reciprocal(h * h).to(at::kFloat)).sum());
  });
  EXPECT_EQ(blamed(incident), "aten::mul (forward)");
}

TEST(Blame, AnInnocentOverflowUpstreamIsPassedOver) {
  // tanh of an overflow is 1 as it should be; the fault is the square root after it.
  const at::Tensor w = leaf(at::full({3}, 300.0f)), v = leaf(at::full({3}, -1.0f));
  const Incident incident({}, [&] {
    const at::Tensor h = w.to(at::kHalf);
    return with_backward((at::tanh(h * h).to(at::kFloat).detach() * at::sqrt(v)).sum());
  });
  EXPECT_EQ(blamed(incident), "aten::sqrt (forward)");
}

TEST(Blame, AnOverflowInBackwardIsToBlameAndNotTheClipThatIsGivenIt) {
  // A static loss scale, unscaled and clipped by hand: 0 times infinity is the clip's, the infinity is not.
  const at::Tensor w = leaf(at::full({4}, 2.0f)), x = at::full({4}, 3.0f);
  StepState state;
  state.parameters = {{"w", w}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (w * x).to(at::kHalf).to(at::kFloat).sum();
    (loss * 16777216.0).backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    const at::Tensor g = w.grad().div_(16777216.0);
    g.mul_(at::clamp(1.0 / (at::linalg_vector_norm(g) + 1e-6), std::nullopt, at::Scalar(1.0)));
    w.sub_(g);
    return loss;
  });
  EXPECT_EQ(blamed(incident).find("aten::_to_copy (backward)"), 0u) << blamed(incident);
}

TEST(Blame, AnExponentialOfTooLargeANumberIsNotMeantAlthoughASigmoidMakesOneOfIt) {
  const at::Tensor logvar = leaf(at::tensor({5000.0f, 0.1f, -0.3f})), eps = at::tensor({1.0f, 2.0f, 3.0f});
  const at::Tensor v = at::tensor({1.0f, -1.0f, 0.5f, 1.0f, 1.0f, -2.0f}).view({3, 2});
  const at::Tensor rows = at::eye(3);
  const Incident incident({}, [&] {
    const at::Tensor z = (rows * (at::exp(logvar) * eps).unsqueeze(0)).matmul(v);
    return with_backward(at::sigmoid(z).sum() + (z * 0).sum());
  });
  EXPECT_EQ(blamed(incident), "aten::exp (forward)");
}

TEST(Blame, WhatOnlyOverflowsWithoutAnotherDoesNotStandForIt) {
  // The mean overflows as well once the square is clamped to the end of fp32; the square is the cause.
  const at::Tensor w = leaf(at::full({8}, 3e19f)), v = leaf(at::full({8}, 2e19f));
  const Incident incident({}, [&] { return with_backward(w.pow(2).mean() + v.pow(2).mean()); });
  EXPECT_EQ(blamed(incident).find("aten::pow (forward)"), 0u) << blamed(incident);
}

TEST(Blame, AnEarlierRunIsNotRepeated) {
  // Sixty ops, then the fault: what lies before it is run once as a whole and once for the checkpoint.
  const at::Tensor x = leaf(at::ones({4}));
  const Incident incident({}, [&] {
    at::Tensor h = x;
    for (int i = 0; i < 60; ++i) h = h * 1.01;
    return with_backward(at::log(h - h).sum());
  });
  Lab lab(incident.replayer());
  const RunResult recorded = lab.run({});
  const auto ops = static_cast<std::int64_t>(incident.doc().ops.size());
  EXPECT_EQ(lab.ops_run(), ops);
  const Blame blame = find_blame(lab, recorded);
  EXPECT_FALSE(blame.set.empty());
  EXPECT_GE(lab.runs(), 2);
  EXPECT_LT(lab.ops_run(), ops + 62 + (ops - 60) * (lab.runs() - 1));
}

TEST(Blame, WithoutTimeNothingIsClaimed) {
  const at::Tensor x = leaf(at::full({2}, -1.0f)), y = leaf(at::full({2}, -1.0f));
  const Incident incident({}, [&] { return with_backward(at::log(x).sum() + at::log(y).sum()); });
  Lab lab(incident.replayer(), {.seconds = 1e-9});
  const Blame blame = find_blame(lab, lab.run({}));
  EXPECT_TRUE(blame.set.empty());
}

}  // namespace
}  // namespace nanquest
