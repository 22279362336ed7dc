// Each cause on steps made in memory: variants that the sample programs don't show.
#include "replay/cause/samples.h"
#include "tests/replay/diagnose/incident.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kInf;
using testing::kNaN;
using testing::leaf;
using testing::tried;

TEST(Fp16Overflow, CastAndBackwardAreCaughtToo) {
  const at::Tensor w = leaf(at::full({3}, 70000.f));
  const Finding cast = Incident({}, [&] {
                         const at::Tensor loss = at::softmax(w.to(at::kHalf).to(at::kFloat), 0).sum();
                         loss.backward();
                         return loss;
                       }).finding();
  EXPECT_EQ(cast.label, "FP16_OVERFLOW");

  const at::Tensor v = leaf(at::full({3}, 1.f));
  StepState state;
  state.loss_scale = 65536;
  const Incident scaled(state, [&] {
    const at::Tensor loss = (v.to(at::kHalf) * 300).to(at::kFloat).sum();
    (loss * 65536.0 / 300).backward();
    return loss;
  });
  const Finding backward = scaled.finding();
  EXPECT_EQ(backward.label, "FP16_OVERFLOW") << backward.explanation;
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
  EXPECT_EQ(v.cause, "FP16_OVERFLOW") << v.explanation;
  EXPECT_EQ(v.phase, "backward");
  EXPECT_EQ(tried(v, "loss scale").kind, "hyperparameter");
  // head.grad = hᵀ · grad sums two products of 8 and the scale: 8 · 2 · 16384 is beyond 65504, 8 · 2 · 1024
  // is not.
  EXPECT_EQ(tried(v, "loss scale 16384").result, "non_finite");
  EXPECT_EQ(tried(v, "loss scale 1024").result, "finite");
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
  ASSERT_EQ(f.label, "FP16_OVERFLOW");
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
  EXPECT_EQ(v.cause, "FP16_OVERFLOW");
  EXPECT_EQ(v.culprit.module, "attention");
  EXPECT_EQ(v.precision.verdict, "curable");
  ASSERT_TRUE(v.fix.has_value()) << v.explanation;
  EXPECT_NE(v.fix->change.find("and the ops that read its result"), std::string::npos) << v.fix->change;
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed && v.fix->minimal);
  EXPECT_EQ(tried(v, "aten::mm in attention computed in fp32").result, "non_finite");
  EXPECT_NEAR(v.confidence, 0.99, 1e-9);
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
  EXPECT_EQ(v.culprit.value, "silent");
  EXPECT_EQ(v.cause, "FP16_OVERFLOW") << v.explanation;
  EXPECT_EQ(v.precision.fp32, "finite");
}

TEST(LogZero, FollowsZerosToTheOpThatMadeThem) {
  const at::Tensor w = leaf(at::tensor({200.f, 0.f}));
  const Finding f = Incident({}, [&] {
                      const at::Tensor loss = -at::log(at::softmax(w, 0)).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_EQ(f.label, "LOG_ZERO");
  EXPECT_NE(f.explanation.find("aten::_softmax"), std::string::npos) << f.explanation;
}

TEST(LogZero, Log1pAtMinusOne) {
  const at::Tensor w = leaf(at::tensor({-1.f, 0.5f}));
  const Verdict v = Incident({}, [&] {
                      const at::Tensor loss = at::log1p(w).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, "LOG_ZERO");
  EXPECT_EQ(v.precision.verdict, "structural");
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
  EXPECT_EQ(f.label, "DIV_ZERO");
  EXPECT_NE(f.explanation.find("0 / 0"), std::string::npos);
}

TEST(SingularGrad, AcosAtOneAndPowBelowOne) {
  const at::Tensor a = leaf(at::tensor({1.f, 0.5f}));
  StepState with_a;
  with_a.parameters = {{"a", a}};
  const Verdict acos = Incident(with_a, [&] {
                         const at::Tensor loss = at::acos(a).sum();
                         loss.backward();
                         return loss;
                       }).verdict();
  EXPECT_EQ(acos.cause, "SINGULAR_GRAD") << acos.explanation;
  EXPECT_EQ(acos.phase, "backward");

  const at::Tensor b = leaf(at::tensor({0.f, 2.f}));
  StepState with_b;
  with_b.parameters = {{"b", b}};
  const Verdict pow = Incident(with_b, [&] {
                        const at::Tensor loss = at::pow(b, 0.5).sum();
                        loss.backward();
                        return loss;
                      }).verdict();
  EXPECT_EQ(pow.cause, "SINGULAR_GRAD") << pow.explanation;
  EXPECT_EQ(pow.precision.verdict, "structural");
}

TEST(BadState, ParameterIsNamed) {
  at::Tensor values = at::ones({3, 3});
  values[1][1] = kNaN;
  const at::Tensor w = leaf(values), x = at::ones({2, 3});
  StepState state;
  state.parameters = {{"fc.weight", w}};
  state.batch = {{"x", x}};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor loss = at::mm(x, w).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, "BAD_STATE");
  EXPECT_EQ(v.origin, "parameter");
  EXPECT_EQ(v.phase, "input");
  EXPECT_EQ(v.culprit.tensor, "fc.weight");
  EXPECT_EQ(v.precision.verdict, "not_a_precision_matter");
}

TEST(Diagnose, HealthyStepIsNoFinding) {
  const at::Tensor w = leaf(at::ones({3, 3}));
  const Verdict v = Incident({}, [&] {
                      const at::Tensor loss = at::mm(w, w).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_FALSE(v.found);
  EXPECT_TRUE(v.reproduction.bit_exact);
}

TEST(Diagnose, GrowthMakesItDelayedAndSaysWhatOneStepCantShow) {
  const at::Tensor w = leaf(at::full({4, 4}, 300.f)), x = at::full({2, 4}, 200.f);
  StepState state;
  SeriesTable norms{"grad_norm", {"a", "b"}, {}};
  for (int i = 0; i < 40; ++i) {
    norms.values.push_back(1.0);
    norms.values.push_back(i == 20 ? kNaN : std::exp2(i * 0.25));
  }
  state.history = {norms};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor loss =
                          at::softmax(at::mm(x.to(at::kHalf), w.to(at::kHalf)).to(at::kFloat), 1).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, "FP16_OVERFLOW");
  EXPECT_EQ(v.precision.verdict, "delayed");
  bool series = false, root = false;
  for (const Evidence& e : v.evidence)
    series = series || (e.series.size() == 40 && e.name.find("grad_norm of b") != std::string::npos);
  for (const std::string& line : v.not_tested) root = root || line.find("root cause") != std::string::npos;
  EXPECT_TRUE(series);
  EXPECT_TRUE(root);
}

TEST(Bisect, FindsTheTwoSamplesAndTheModule) {
  at::Tensor x = at::rand({6, 4});
  x[1] *= 60000, x[4] *= 60000;
  const at::Tensor w = leaf(at::full({4, 4}, 2.f)), v = leaf(at::ones({4, 4}));
  StepState state;
  state.parameters = {{"w", w}, {"v", v}};
  state.batch = {{"x", x}};
  const Incident incident(state, [&] {
    at::Tensor h, g;
    {
      ModuleScope scope("a", "Linear");
      g = at::mm(at::ones({6, 4}, at::kHalf), v.to(at::kHalf)).to(at::kFloat);
    }
    {
      ModuleScope scope("b", "Linear");
      h = at::mm((x.to(at::kHalf)), w.to(at::kHalf)).to(at::kFloat);
    }
    const at::Tensor loss = at::log_softmax(h, 1).sum() + g.sum();
    loss.backward();
    return loss;
  });
  const Case c = incident.make();
  const SampleBisection samples = bisect_samples(c, 100);
  EXPECT_EQ(samples.poison, (std::vector<std::int64_t>{1, 4})) << samples.note;
  const ModuleBisection modules = bisect_modules(c, 100);
  EXPECT_TRUE(modules.finite_with_all);
  EXPECT_EQ(modules.modules, (std::vector<std::string>{"b"}));
}

}  // namespace
}  // namespace nanquest
