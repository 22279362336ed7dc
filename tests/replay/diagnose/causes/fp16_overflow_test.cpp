// FP16_OVERFLOW: its sample, its variants, and what looks like it and is not.
#include "replay/case/values.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::expect_cause;
using testing::expect_unknown;
using testing::Incident;
using testing::leaf;
using testing::trained;
using testing::tried;

TEST(Fp16Overflow, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("fp16_overflow", {.cause = Label::fp16_overflow,
                                           .phase = Phase::forward,
                                           .op = "aten::mm",
                                           .module = "mlp",
                                           .precision = PrecisionVerdict::curable});
}

TEST(Fp16Overflow, CastAndBackwardAreCaughtToo) {
  const at::Tensor w = leaf(at::full({3}, 70000.f));
  const Finding cast = Incident({}, [&] {
                         const at::Tensor loss = at::softmax(w.to(at::kHalf).to(at::kFloat), 0).sum();
                         loss.backward();
                         return loss;
                       }).finding();
  EXPECT_EQ(cast.label, Label::fp16_overflow);

  const at::Tensor v = leaf(at::full({3}, 1.f));
  StepState state;
  state.loss_scale = 65536;
  state.parameters = {{"v", v}};  // what is not named can't be harmed
  const Incident scaled(state, [&] {
    const at::Tensor loss = (v.to(at::kHalf) * 300).to(at::kFloat).sum();
    (loss * 65536.0 / 300).backward();
    return loss;
  });
  const Finding backward = scaled.finding();
  EXPECT_EQ(backward.label, Label::fp16_overflow) << backward.explanation;
  ASSERT_NE(scaled.make().op(), nullptr);
  EXPECT_EQ(scaled.make().op()->phase, Phase::backward);
  EXPECT_NE(backward.explanation.find("loss scale"), std::string::npos) << backward.explanation;
}

TEST(Fp16Overflow, ASmallerLossScaleIsTriedAndVerified) {
  const at::Tensor w = leaf(at::ones({8, 3})), head = leaf(at::ones({3, 1})), x = at::ones({2, 8});
  StepState state;
  state.loss_scale = 65536;
  state.parameters = {{"w", w}, {"head", head}};
  const Incident incident(state, [&] {
    at::Tensor h, y;
    {
      ModuleScope scope("body", "Linear");
      h = at::mm(x.to(at::kHalf), w.to(at::kHalf));
    }
    {
      ModuleScope scope("head", "Linear");
      y = at::mm(h, head.to(at::kHalf));
    }
    const at::Tensor loss = y.to(at::kFloat).sum();
    (loss * 65536.0).backward();
    return loss;
  });
  const Verdict v = incident.verdict();
  EXPECT_EQ(v.cause, Label::fp16_overflow) << v.explanation;
  EXPECT_EQ(v.phase, Phase::backward);
  EXPECT_EQ(tried(v, "loss scale").kind, ChangeKind::hyperparameter);
  // head.grad = hᵀ · grad sums two products of 8 and the scale: 8 · 2 · 16384 is beyond 65504, 8 · 2 · 1024
  // is not.
  EXPECT_EQ(tried(v, "loss scale 16384").result, TrialResult::non_finite);
  EXPECT_EQ(tried(v, "loss scale 1024").result, TrialResult::finite);
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_NE(v.fix->change.find("loss scale"), std::string::npos) << v.fix->change;
}

TEST(Fp16Overflow, EvidenceHoldsTheNumberThatATenComputes) {
  const at::Tensor w = leaf(at::full({4, 4}, 300.f)), x = at::full({2, 4}, 200.f);
  const Incident incident({}, [&] {
    const at::Tensor loss = at::softmax(at::mm(x.to(at::kHalf), w.to(at::kHalf)).to(at::kFloat), 1).sum();
    loss.backward();
    return loss;
  });
  const Finding f = incident.finding();
  ASSERT_EQ(f.label, Label::fp16_overflow);
  EXPECT_EQ(f.evidence[0].value, "240000");  // 4 · 300 · 200
  EXPECT_EQ(f.evidence[0].limit, "65504");
  EXPECT_EQ(f.evidence[1].value, "8 of 8");
}

TEST(Fp16Overflow, ProtectingTheOpAndItsReadersIsMinimalWhenTheValueShrinksAgain) {
  // The product overflows, the very next op brings it back into range: op + readers in fp32 is enough.
  const at::Tensor w = leaf(at::full({4, 4}, 300.f)), x = at::full({2, 4}, 200.f),
                   other = leaf(at::ones({4, 4}));
  StepState state;
  state.parameters = {{"w", w}, {"other", other}};
  const Incident incident(state, [&] {
    at::Tensor side, scores;
    {
      ModuleScope scope("side", "Linear");
      side = at::mm(x.to(at::kHalf) / 200, other.to(at::kHalf));
    }
    {
      ModuleScope scope("attention", "Attention");
      scores = at::mm(x.to(at::kHalf), w.to(at::kHalf)) / 1000;
    }
    const at::Tensor loss = at::log_softmax((scores + side).to(at::kFloat), 1).sum();
    loss.backward();
    return loss;
  });
  const Verdict v = incident.verdict();
  EXPECT_EQ(v.cause, Label::fp16_overflow);
  EXPECT_EQ(v.culprit.module, "attention");
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::curable);
  ASSERT_TRUE(v.fix.has_value()) << v.explanation;
  EXPECT_NE(v.fix->change.find("and the ops that read its result"), std::string::npos) << v.fix->change;
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed && v.fix->minimal);
  EXPECT_EQ(tried(v, "aten::mm in attention computed in fp32").result, TrialResult::non_finite);
  EXPECT_GE(v.confidence, 0.8);
  // What was tried in vain is no advice.
  EXPECT_EQ(v.advice.find("Keep this op in fp32"), std::string::npos) << v.advice;
  EXPECT_NE(v.advice.find("Keep more than this op in fp32 (alone it does not help; "), std::string::npos)
      << v.advice;
}

TEST(Fp16Overflow, IsSeenWhereLaterOpsHideItAsZeros) {
  const at::Tensor w = leaf(at::full({4}, 300.f)), other = leaf(at::full({4}, 2.f));
  const Incident incident({}, [&] {
    const at::Tensor h = w.to(at::kHalf), k = other.to(at::kHalf);
    const at::Tensor loss =
        (at::reciprocal(h * h) + k * k).to(at::kFloat).sum();  // 1 / Inf = 0: nothing to be seen
    loss.backward();
    return loss;
  });
  const Verdict v = incident.verdict();
  EXPECT_EQ(v.culprit.value, BadValue::silent);
  EXPECT_EQ(v.cause, Label::fp16_overflow) << v.explanation;
  EXPECT_EQ(v.precision.fp32, PrecisionResult::finite);
}

TEST(Fp16Overflow, AnyFormat) {
  const at::Tensor w = leaf(at::full({2}, 3e38f));
  expect_cause(trained(w, [&] { return (w.to(at::kBFloat16) * 4).to(at::kFloat).sum(); }),
               Label::fp16_overflow, "aten::mul");
  expect_cause(trained(w, [&] { return (w * 4).sum(); }), Label::fp16_overflow, "aten::mul");
  const at::Tensor v = leaf(at::tensor({100.f, 1e5f}));
  expect_cause(trained(v, [&] { return v.to(at::kFloat8_e5m2).to(at::kFloat).sum(); }), Label::fp16_overflow,
               "aten::_to_copy");
}

TEST(Fp16Overflow, ANormWhoseSquaresOverflow) {
  // 1e20 · sqrt(3) fits into fp32, its square does not.
  const at::Tensor w = leaf(at::full({3}, 1e20f));
  expect_cause(trained(w, [&] { return at::log(at::linalg_vector_norm(w)); }), Label::fp16_overflow,
               "aten::linalg_vector_norm");
  const at::Tensor v = leaf(at::tensor({1e20f, -1e20f, 2e20f}));
  expect_cause(trained(v, [&] { return at::layer_norm(v, {3}).pow(2).sum(); }), Label::fp16_overflow,
               "aten::native_layer_norm");
}

TEST(Fp16Overflow, SaysWhatTheElementsBecame) {
  const at::Tensor w = leaf(at::full({2}, 3e38f)), v = leaf(at::tensor({3e38f, 1.f, 0.f, -1.f}));
  const std::string infinite = trained(w, [&] { return (w * 4).sum(); }).finding().explanation;
  EXPECT_NE(infinite.find("2 elements became infinite although"), std::string::npos) << infinite;
  const std::string nan =
      trained(v, [&] { return at::layer_norm(v, {4}).pow(2).sum(); }).finding().explanation;
  EXPECT_NE(nan.find("4 elements became NaN although"), std::string::npos) << nan;
}

TEST(Fp16Overflow, OfAnOpOnListsInTheOptimizer) {
  const at::Tensor w = leaf(at::full({1}, 3e38f)), v = leaf(at::ones({3}));
  StepState state;
  state.parameters = {{"w", w}, {"v", v}};
  expect_cause(Incident(state,
                        [&] {
                          const at::Tensor loss = w.sum() * 1e-9 + v.sum();
                          loss.backward();
                          const at::NoGradGuard no_grad;
                          const PhaseScope phase(Phase::optimizer);
                          at::_foreach_mul_({v, w}, 4.0);
                          return loss;
                        }),
               Label::fp16_overflow, "aten::_foreach_mul_");
}

TEST(Fp16Overflow, DropoutIsNotDrawnAgain) {
  const at::Tensor w = leaf(at::full({64}, 60000.f));
  const Incident incident = trained(
      w, [&] { return std::get<0>(at::native_dropout(w.to(at::kHalf), 0.5, true)).to(at::kFloat).sum(); });
  ASSERT_FALSE(incident.doc().culprit.value.empty());
  const Case c = incident.make();
  EXPECT_FALSE(evaluate(*c.op(), c.values(c.op_index()).arguments, Precision::fp32).has_value());
}

TEST(Fp16Overflow, ExpOfTooMuchIsNotFp16Overflow) {
  const at::Tensor w = leaf(at::full({4}, 12.f));
  expect_cause(trained(w, [&] { return at::exp(w.to(at::kHalf)).to(at::kFloat).mean(); }),
               Label::exp_overflow);
}

TEST(Fp16Overflow, MaskConstantLeavingTheRangeIsNotFp16Overflow) {
  const at::Tensor scores = leaf(at::full({2, 3}, -40.f));
  at::Tensor mask = at::zeros({2, 3}, at::kHalf);
  mask.select(0, 1).fill_(
      -65504.f);  // finfo.min, on the whole row: with anything negative added it leaves the range
  expect_cause(trained(scores,
                       [&] {
                         const at::Tensor masked = scores.to(at::kHalf) + mask;
                         return at::softmax(masked.to(at::kFloat), 1).sum();
                       }),
               Label::mask_overflow);
}

/// Whatever saturates on the infinity, and wherever backward makes NaN of it: only with a wider range the
/// step is finite.
TEST(Fp16Overflow, BehindAFunctionThatSaturates) {
  const at::Tensor w = leaf(at::tensor({300.f, 1.f, -3.f}));
  const auto half = [&] { return w.to(at::kHalf); };
  const auto gelu = [](const at::Tensor& x) {
    return 0.5 * x * (1 + at::tanh(0.79788456 * (x + 0.044715 * at::pow(x, 3.0))));
  };
  const auto overflows = [&](const std::function<at::Tensor()>& f, Label label) {
    w.mutable_grad() = at::Tensor();
    testing::expect_cause(testing::trained(w, [&] { return f().to(at::kFloat).sum(); }), label);
  };
  overflows([&] { return gelu(half()); }, Label::fp16_overflow);
  overflows([&] { return at::tanh(half() * half() * half()); }, Label::fp16_overflow);
  overflows([&] { return at::sigmoid(half().square().square()); }, Label::fp16_overflow);
  overflows([&] { return at::atan(half().square() * half()); }, Label::fp16_overflow);
  overflows([&] { return at::tanh((w * 1e30).square().square()); }, Label::fp16_overflow);
  overflows([&] { return at::where(half() > 50, half() * 0, 1 / (half() * half() * half())); },
            Label::fp16_overflow);
  overflows([&] { return 1 / (1 + at::exp(half())); }, Label::exp_overflow);
}

TEST(Fp16Overflow, WhatNoFormatHoldsIsNotExplained) {
  // fp64 cannot hold 1e308 · 10 either: there is no wider format to prove it in.
  const at::Tensor w = leaf(at::full({2}, 1e308, at::kDouble));
  expect_unknown(Incident({}, [&] {
    const at::Tensor loss = (w * 10.0).sum();
    loss.backward();
    return loss;
  }));
}

}  // namespace
}  // namespace nanquest
