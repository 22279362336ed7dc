// What counts as harm, for how many ops a fix is made, and what its placebo touches.
#include "probe/observe/step_scope.h"
#include "replay/cause/protect.h"
#include "replay/cause/samples.h"
#include "replay/lab/lab.h"
#include "replay/lab/nearness.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kInf;
using testing::kNaN;
using testing::leaf;
using testing::trained;

/// A step of two weights whose update is `update`.
Incident updated(const at::Tensor& a, const at::Tensor& b, const StepState& more,
                 const std::function<at::Tensor()>& loss, const std::function<void()>& update) {
  StepState state = more;
  state.parameters = {{"a", a}, {"b", b}};
  return Incident(state, [&] {
    const at::Tensor l = loss();
    l.backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    update();
    return l;
  });
}

void expect_fix(const Verdict& v, Label cause) {
  EXPECT_EQ(v.cause, cause) << v.explanation;
  std::string tried;
  for (const Counterfactual& c : v.counterfactuals)
    tried += c.change + " -> " + std::string(word(c.result)) + "\n";
  for (const std::string& note : v.not_tested) tried += note + "\n";
  ASSERT_TRUE(v.fix.has_value()) << tried;
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed && v.fix->minimal) << tried;
}

TEST(Fixes, AreMadeForEveryOpThatIsToBlame) {
  const at::Tensor a = leaf(at::ones({4})), b = leaf(at::ones({3}));
  const Verdict v = updated(
                        a, b, {}, [&] { return (a * 0).sum() + (b * 0).sum(); },
                        [&] {
                          for (const at::Tensor& w : {a, b}) w.sub_(w.grad() / w.grad().norm());
                        })
                        .verdict();
  expect_fix(v, Label::div_zero);
  EXPECT_EQ(v.blame.set.size(), 2u);
  EXPECT_NE(v.fix->change.find("and the same for op " + std::to_string(v.blame.set[1].index)),
            std::string::npos)
      << v.fix->change;
}

/// A norm of 0 in two layers, of rows that give zeros. With 1 in its place the scale of all other rows is 1,
/// so nothing is added to what they give; in fp64 rounding of the norm is left of that, which is no other
/// result.
TEST(Fixes, WhatRoundingLeavesOfADifferenceIsNoDeadOperation) {
  at::Tensor first = at::randn({6, 4}), second = at::randn({6, 4});
  first[2].zero_(), second[5].zero_();
  const at::Tensor a = leaf(first.norm(2, {1})), b = leaf(second.norm(2, {1})), x = at::randn({3, 4});
  const auto scaled = [&](const at::Tensor& magnitude, const at::Tensor& weight) {
    const at::Tensor base = at::mm(x, weight.t());
    return base + (magnitude / weight.norm(2, {1}) - 1) * base;
  };
  StepState state;
  state.parameters = {{"a", a}, {"b", b}};
  const Verdict v = testing::backward_of(state, [&] {
                      return scaled(a, first).square().mean() + scaled(b, second).square().mean();
                    }).verdict();
  expect_fix(v, Label::div_zero);
}

TEST(Fixes, ARateThatWentIntoSeveralNumbers) {
  const at::Tensor a = leaf(at::ones({4})), b = leaf(at::ones({3}));
  const Verdict v = updated(
                        a, b, {}, [&] { return a.pow(2).sum() + b.pow(2).sum(); },
                        [&] {
                          const std::vector<at::Tensor> weights = {a, b}, gradients = {a.grad(), b.grad()};
                          at::_foreach_mul_(weights, 1 - kNaN * 0.01);
                          at::_foreach_add_(weights, gradients, -kNaN);
                        })
                        .verdict();
  expect_fix(v, Label::bad_setting);
  EXPECT_EQ(v.origin, Origin::setting);
  EXPECT_EQ(v.phase, Phase::optimizer);
}

TEST(Fixes, WhatStillFailsAfterTheFirstIsMendedWithIt) {
  // A graph without edges: 0 / 0, and beside it the root of the same zero, whose derivative is infinite.
  const at::Tensor w = leaf(at::tensor({1.f, 2.f, 3.f})), edges = at::tensor({0.f, 1.f, 2.f});
  const Verdict v = trained(w, [&] {
                      const at::Tensor degree = w * edges;
                      return (degree.square() / degree + degree.sqrt()).sum();
                    }).verdict();
  expect_fix(v, Label::div_zero);
  EXPECT_EQ(v.culprit.op, "aten::div");
  EXPECT_NE(v.fix->change.find("before aten::sqrt"), std::string::npos) << v.fix->change;
}

TEST(Fixes, WhatTheFirstFailureHidIsMendedWithIt) {
  // The scale of a row of zeros is infinite, twice: what the second would divide by is NaN until the first is
  // mended.
  const at::Tensor w = leaf(at::tensor({0.f, 0.f, 1.f, -2.f}).view({2, 2}));
  const auto scaled = [](const at::Tensor& x) { return x * (at::reciprocal(x.abs().amax(1, true)) * 127); };
  const Verdict v = trained(w, [&] { return scaled(scaled(w) * 0.01).sum(); }).verdict();
  expect_fix(v, Label::div_zero);
  EXPECT_EQ(v.culprit.op, "aten::reciprocal");
}

TEST(Fixes, AGuardIsHeldAgainstOtherElementsAndNotAgainstAGuardThatMayHelpToo) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f, 3.f, 4.f})), x = at::tensor({0.f, 1.f, 2.f, 3.f});
  // An epsilon two ops earlier would help as well: it is no placebo.
  const Verdict v = trained(w, [&] { return (w * x).pow(1.0).pow(0.5).sum(); }).verdict();
  expect_fix(v, Label::singular_grad);
  EXPECT_EQ(testing::tried(v, "other elements").result, TrialResult::non_finite);
}

TEST(Fixes, WhatWasBadBeforeTheStepIsNotItsHarm) {
  const at::Tensor a = leaf(at::ones({4})), b = leaf(at::ones({3})), moment = at::full({4}, kInf);
  StepState state;
  state.optimizer = {{"a.exp_avg_sq", moment}};
  const Verdict v = updated(
                        a, b, state, [&] { return (a * kNaN).sum() + b.sum(); },
                        [&] {
                          moment.mul_(0.99).addcmul_(a.grad(), a.grad(), 0.01);
                          a.addcdiv_(a.grad(), moment.sqrt() + 1e-8, -1e-3);
                        })
                        .verdict();
  expect_fix(v, Label::bad_setting);
  EXPECT_EQ(v.culprit.op, "aten::mul");
  EXPECT_EQ(v.phase, Phase::forward);
}

TEST(Fixes, ANormThatOverflowedInEveryGradient) {
  const at::Tensor a = leaf(at::ones({4})), b = leaf(at::ones({3}));
  const Verdict v = updated(
                        a, b, {}, [&] { return (a * 1e22).sum() + (b * 1e22).sum(); },
                        [&] {
                          const at::Tensor norm = at::stack({a.grad().norm(), b.grad().norm()}).norm();
                          const at::Tensor clip = at::clamp_max(1.0 / (norm + 1e-6), 1.0);
                          for (const at::Tensor& w : {a, b}) w.sub_(w.grad().mul_(clip));
                        })
                        .verdict();
  ASSERT_TRUE(v.found);
  EXPECT_EQ(v.culprit.value, BadValue::silent);
  expect_fix(v, Label::norm_overflow);
}

TEST(Fixes, TheSmallestSetOfOpsThatMustRunWider) {
  // 260 x 260 leaves fp16 at once and comes back two ops later; the ops beside it and after it can stay.
  const at::Tensor w = leaf(at::full({4}, 260.f));
  const Incident incident = trained(w, [&] {
    const at::Tensor half = w.to(at::kHalf);
    const at::Tensor back = half.mul(half).mul(2).div(1000);
    return (back.add(1).mul(0.5) + half.sub(1)).to(at::kFloat).sum();
  });
  const Case c = incident.make();
  ASSERT_EQ(c.op()->name, "aten::mul");
  const std::vector<std::int32_t> found = protected_set(c, Precision::fp32);
  std::vector<std::string> names;
  for (const std::int32_t op : found) names.push_back(c.row(op)->name);
  EXPECT_EQ(names, (std::vector<std::string>{"aten::mul", "aten::mul", "aten::div"}));
  // No two ops of the whole step do it.
  const auto all = static_cast<std::int32_t>(c.doc().ops.size());
  for (std::int32_t a = 0; a < all; ++a)
    for (std::int32_t b = a; b < all; ++b)
      EXPECT_NE(run_change(c, set_in(c, {a, b}, Precision::fp32)), TrialResult::finite) << a << ", " << b;
}

/// What Ctrl-C leaves: run in a process of its own, since it stops every lab.
int stopped_verdict() {
  const at::Tensor w = leaf(at::zeros({3}));
  const Incident incident = trained(w, [&] { return (w * 2).log().sum(); });
  Lab::stop();
  const Verdict v = incident.verdict();
  const bool said = std::any_of(v.not_tested.begin(), v.not_tested.end(), [](const std::string& note) {
    return note == "what was left to try when it was stopped";
  });
  return v.culprit.op == "aten::log" && !v.fix && said ? 0 : 1;
}

TEST(Fixes, AWholeStepOfBf16IsTriedInFp64WhereFp32IsNoWider) {
  const at::Tensor w = leaf(at::linspace(1e22, 4e22, 8).to(at::kBFloat16));
  const Verdict v = trained(w, [&] { return (w * w).sum() * 1e-20; }).verdict();
  expect_fix(v, Label::fp16_overflow);
  EXPECT_EQ(v.precision.fp32, PrecisionResult::non_finite);
  EXPECT_NE(v.fix->change.find("fp64"), std::string::npos) << v.fix->change;
}

TEST(Fixes, AStepOfFp16ThatFp32IsTooShortForIsTriedInFp64) {
  const at::Tensor w = leaf(at::linspace(1e3, 3e3, 8).to(at::kHalf));
  const Incident incident = trained(w, [&] { return (w * w).square().square().square().sum() * 1e-50; });
  const Verdict v = incident.verdict();
  expect_fix(v, Label::fp16_overflow);
  EXPECT_EQ(v.precision.fp32, PrecisionResult::non_finite);
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::curable);
  EXPECT_NE(v.fix->change.find("fp64"), std::string::npos) << v.fix->change;
  const ModuleBisection b = bisect_modules(incident.make(), 8);
  EXPECT_EQ(b.precision, "fp64");
  EXPECT_TRUE(b.finite_with_all);
}

TEST(FixesDeathTest, WhatIsKnownWhenItIsStoppedIsSaid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(stopped_verdict()), ::testing::ExitedWithCode(0), "");
}

/// How near the step with a change is to fp64.
Nearness near(const Case& c, const Change& change) {
  RunOptions here = change.options;
  here.keep = c.doc().gradients;
  return nearness(c.graph(), c.whole(Precision::as_recorded), c.run(here),
                  c.run(in_fp64(c.graph(), change.options)));
}

TEST(Nearness, AStepThatIsFiniteAndWrongIsToldByItsDistanceToFp64) {
  // 1 + 1024 - 1024 is 1 in fp16 and 0 in bf16, and 260 x 260 is beyond fp16 alone.
  const at::Tensor w = leaf(at::full({4}, 260.f)), far = at::full({4}, 1024.f, at::kHalf);
  const Incident incident = trained(w, [&] {
    const at::Tensor half = w.to(at::kHalf);
    return (((half / 260 + far - far) * half.pow(2) / 256).to(at::kFloat)).sum();
  });
  const Case c = incident.make();
  const NearnessLimits limits = nearness_limits(c.graph());
  const Nearness wide = near(c, step_in(c, Precision::fp32)), coarse = near(c, step_in(c, Precision::bf16));
  ASSERT_TRUE(wide.known && coarse.known);
  EXPECT_EQ(why_not_near(wide, limits), "");
  EXPECT_NEAR(wide.loss, 0, 1e-3);
  EXPECT_NEAR(coarse.loss, 1, 1e-2);  // 0 instead of 4 x 264
  EXPECT_NE(why_not_near(coarse, limits), "");
  const Verdict v = incident.verdict();
  expect_fix(v, Label::fp16_overflow);
  EXPECT_EQ(v.fix->change.find("bf16"), std::string::npos) << v.fix->change;
}

TEST(Fixes, APatchHasTheNumbersThatWereTried) {
  const at::Tensor w = leaf(at::tensor({0.f, 2.f}));
  const Incident incident = trained(w, [&] { return at::reciprocal(w * 3).sum(); });
  const Case c = incident.make();
  ASSERT_EQ(c.row(0)->name, "aten::mul");
  const Change other = edit_constant(c, 0, "other", 3, 0.1234567890123),
               guard = clamp_argument(c, 1, "self", 1e-5, 1. / 3);
  ASSERT_TRUE(other.edit && guard.edit);
  EXPECT_EQ(other.edit->with, "0.1234567890123");
  EXPECT_EQ(guard.edit->with, "{}.clamp(min=1e-05, max=0.3333333333333333)");
}

TEST(Nearness, WhatCameBeforeTheChangeIsAsRecorded) {
  // 1e-4 disappears beside 1 in fp16 and is there in fp64, which would make another loss of the guarded step.
  const at::Tensor w = leaf(at::tensor({1e-4f, 0.5f, 1.f}));
  const Incident incident = trained(w, [&] {
    const at::Tensor rest = (w.to(at::kHalf) + 1 - 1).to(at::kFloat);
    return (at::reciprocal(rest) * 1e-3 + w).sum();
  });
  const Case c = incident.make();
  ASSERT_EQ(c.op()->name, "aten::reciprocal");
  const Nearness n = near(c, guard_argument(c, c.op_index(), "self", Guard::zero_to_one));
  ASSERT_TRUE(n.known);
  EXPECT_LT(n.loss, 1e-6);
  EXPECT_LT(n.gradients, 1e-5);
}

TEST(Guards, OnlyTheOpAndItsDerivativeReadTheGuardedValue) {
  const at::Tensor w = leaf(at::tensor({0.f, 2.f, 4.f}));
  const Incident incident = trained(w, [&] {
    const at::Tensor length = w * 1;
    const at::Tensor logarithm = at::log(length);  // first: runs with a change begin there
    return (logarithm + length.sin()).sum();
  });
  const Case c = incident.make();
  ASSERT_EQ(c.op()->name, "aten::log");
  const Change guard = guard_argument(c, c.op_index(), "self", Guard::zero_to_safe_root);
  std::map<std::string, at::Tensor> made;
  const auto run = [&](RunOptions options) {
    options.on_op = [&](std::int32_t op, const std::vector<at::Tensor>& outputs) {
      if (!outputs.empty() && outputs[0].defined()) made[c.row(op)->name] = outputs[0].clone();
    };
    (void)c.run(options);
  };
  run(guard.options);
  EXPECT_TRUE(at::allclose(made.at("aten::log"), at::log(at::tensor({1e-8f, 2.f, 4.f}))));
  EXPECT_TRUE(at::equal(made.at("aten::sin"), at::sin(at::tensor({0.f, 2.f, 4.f}))));
  EXPECT_EQ(run_change(c, guard), TrialResult::finite);
  ASSERT_EQ(guard.otherwise.size(), 1U);
  run(guard.otherwise[0].options);
  EXPECT_FALSE(at::equal(made.at("aten::sin"), at::sin(at::tensor({0.f, 2.f, 4.f}))));
}

TEST(Nearness, AGuardIsTheSameNumberInEveryFormat) {
  // exp(-200) is 0 in fp32 and 1e-87 in fp64: below the guard in both.
  const at::Tensor w = leaf(at::tensor({-200.f, 1.f, 2.f}));
  const Incident incident = trained(w, [&] { return w.exp().log().sum(); });
  const Case c = incident.make();
  const Nearness n = near(c, guard_argument(c, 1, "self", Guard::zero_to_eps));
  ASSERT_TRUE(n.known);
  EXPECT_LT(n.loss, 1e-6);
  EXPECT_LT(n.gradients, 1e-5);
}

}  // namespace
}  // namespace nanquest
