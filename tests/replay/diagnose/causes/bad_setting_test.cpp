// BAD_SETTING: its sample, its variants, and what looks like it and is not.
#include "probe/observe/step_scope.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kInf;
using testing::kNaN;
using testing::leaf;

TEST(BadSetting, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("bad_setting", {.cause = Label::bad_setting,
                                         .phase = Phase::optimizer,
                                         .op = "aten::add_",
                                         .module = "",
                                         .origin = Origin::setting,
                                         .precision = PrecisionVerdict::not_a_precision_matter});
}

/// A healthy step with this update of `w`, which has the state `v`.
Finding updated(const std::function<void(const at::Tensor& w, const at::Tensor& v)>& update) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f, 3.f})), v = at::tensor({0.f, 1.f, 2.f});
  StepState state;
  state.parameters = {{"w", w}};
  state.optimizer = {{"v", v}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (w * w).sum();
    loss.backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    update(w, v);
    return loss;
  });
  EXPECT_FALSE(incident.doc().culprit.value.empty());
  return incident.finding();
}

TEST(BadSetting, LearningRatesAndDecaysOfEveryKind) {
  for (const double bad : {kNaN, kInf}) {
    for (const auto& update : std::vector<std::function<void(const at::Tensor&, const at::Tensor&)>>{
             [&](const at::Tensor&w, const at::Tensor&) { w.sub_(w.grad(), bad); },
             [&](const at::Tensor&w, const at::Tensor&) { w.sub_(w.grad() * bad); },
             [&](const at::Tensor&w, const at::Tensor&v) { w.addcdiv_(w.grad(), v + 1, bad); },
             [&](const at::Tensor&w, const at::Tensor&) {
               at::_foreach_add_(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{w.grad()}, bad);
             }}) {
      const Finding f = updated(update);
      EXPECT_EQ(f.label, Label::bad_setting) << bad << ": " << f.explanation;
    }
  }
}

TEST(BadSetting, IsCalledByItsNameInTraining) {
  const auto says = [](const std::string& start,
                       const std::function<void(const at::Tensor&, const at::Tensor&)>& update) {
    const std::string explanation = updated(update).explanation;
    EXPECT_EQ(explanation.substr(0, start.size()), start);
  };
  says("the step size (the learning rate; alpha of aten::add_) was nan",
       [](const at::Tensor& w, const at::Tensor&) { w.add_(w.grad(), kNaN); });
  says("the step size (the learning rate; value of aten::addcdiv_) was nan",
       [](const at::Tensor& w, const at::Tensor& v) { w.addcdiv_(w.grad(), v + 1, kNaN); });
  says("the factor on the weights (1 - learning rate * weight decay; other of aten::mul_) was nan",
       [](const at::Tensor& w, const at::Tensor&) { w.mul_(kNaN); });
  // A factor of a gradient may be a clip's factor as well.
  says("other of aten::mul was nan", [](const at::Tensor& w, const at::Tensor&) { w.sub_(w.grad() * kNaN); });
}

TEST(BadSetting, AnInfiniteCoefficientOfALoss) {
  const at::Tensor w = leaf(at::randn({2, 4}));
  StepState state;
  state.parameters = {{"w", w}};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor loss = w.mean() + w.square().mean() * kInf;
                      loss.backward();
                      return loss;
                    }).verdict();
  EXPECT_EQ(v.cause, Label::bad_setting) << v.explanation;
  EXPECT_EQ(v.origin, Origin::setting);
  EXPECT_EQ(v.phase, Phase::forward);
}

TEST(BadSetting, AnInfiniteScaleOfAnAttention) {
  const at::Tensor w = leaf(at::rand({1, 2, 8, 4})), x = at::rand({1, 2, 8, 4});
  const Incident incident = testing::trained(w, [=] {
    return at::scaled_dot_product_attention(w, x, x, {}, 0.0, false, std::numeric_limits<double>::infinity())
        .sum();
  });
  // Its backward is given the same number.
  testing::expect_healed(incident, Label::bad_setting, "aten::_scaled_dot_product_flash_attention_for_cpu");
  const Finding f = incident.finding();
  EXPECT_EQ(f.label, Label::bad_setting) << f.explanation;
  EXPECT_NE(f.explanation.find("scale of aten::_scaled_dot_product"), std::string::npos) << f.explanation;
}

TEST(BadSetting, ALearningRateInATensor) {
  const at::Tensor rate = at::full({}, kNaN).to(at::kFloat);
  const Finding f = updated([&](const at::Tensor& w, const at::Tensor&) { w.sub_(w.grad() * rate); });
  EXPECT_EQ(f.label, Label::bad_setting) << f.explanation;
}

TEST(BadSetting, ABetaOfOne) {
  const double beta = 1;
  const Finding f = updated([&](const at::Tensor& w, const at::Tensor& v) {
    v.mul_(beta).addcmul_(w.grad(), w.grad(), 1 - beta);
    w.addcdiv_(w.grad(), (v.sqrt() / (1 - beta)) + 1e-8, -0.1);
  });
  EXPECT_EQ(f.label, Label::bad_setting) << f.explanation;
}

/// A program's own update, with moments that no optimizer knows.
TEST(BadSetting, ABetaOfOneInAnUpdateByHand) {
  const double correction = 0;  // 1 - beta^t
  const at::Tensor kept = at::tensor({0.f, 1.f, 2.f});
  for (const auto& update : std::vector<std::function<void(const at::Tensor&, const at::Tensor&)>>{
           [&](const at::Tensor&w, const at::Tensor&m) {
             m.mul_(1.0).add_(w.grad(), 0.0);
             w.sub_(m / correction * 0.1);
           },
           [&](const at::Tensor&w, const at::Tensor&m) {
             const at::Tensor next = m * 1.0 + w.grad() * 0.0;
             w.sub_(next / correction * 0.1);
           },
           [&](const at::Tensor&w, const at::Tensor&m) {
             m.mul_(1.0).addcmul_(w.grad(), w.grad(), 0.0);
             w.addcdiv_(w.grad(), (m.to(at::kDouble) / correction).sqrt().add(1e-8).to(at::kFloat), -0.1);
           },
           [&](const at::Tensor&w, const at::Tensor&m) {
             m.lerp_(w.grad(), 0.0);
             w.sub_(at::_foreach_div(std::vector<at::Tensor>{m}, correction)[0]);
           }}) {
    const at::Tensor m = kept.clone();
    const Finding f = updated([&](const at::Tensor& w, const at::Tensor&) { update(w, m); });
    EXPECT_EQ(f.label, Label::bad_setting) << f.explanation;
    EXPECT_NE(f.explanation.find("bias correction"), std::string::npos) << f.explanation;
  }
}

/// A norm that the host read, or a scale, is computed.
TEST(BadSetting, AGradientOrAWeightDividedByZeroIsNot) {
  for (const auto& update : std::vector<std::function<void(const at::Tensor&)>>{
           [](const at::Tensor& w) { w.sub_(w.grad() / 0.0); },
           [](const at::Tensor& w) { w.copy_(w / 0.0); }}) {
    const Finding f = updated([&](const at::Tensor& w, const at::Tensor&) { update(w); });
    EXPECT_EQ(f.label, Label::div_zero) << f.explanation;
  }
}

TEST(BadSetting, ATemperatureOfZero) {
  const at::Tensor w = leaf(at::randn({2, 4}));
  StepState state;
  state.parameters = {{"w", w}};
  const Finding f = Incident(state, [&] {
                      const at::Tensor loss = at::softmax(w / 0.0, 1).pow(2).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_EQ(f.label, Label::bad_setting) << f.explanation;
}

TEST(BadSetting, ACountOfZeroIsNot) {
  const at::Tensor w = leaf(at::randn({2, 4}));
  StepState state;
  state.parameters = {{"w", w}};
  const Finding f = Incident(state, [&] {
                      const at::Tensor loss = (w * w).sum() / 0.0;
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_EQ(f.label, Label::div_zero) << f.explanation;
}

TEST(BadSetting, AMaskOfInfinityIsNot) {
  const at::Tensor w = leaf(at::randn({2, 4})), keep = at::tensor({1.f, 0.f, 1.f, 1.f});
  StepState state;
  state.parameters = {{"w", w}};
  const Finding f = Incident(state, [&] {
                      const at::Tensor loss = at::softmax(w + (1 - keep) * -kInf, 1).pow(2).sum();
                      loss.backward();
                      return loss;
                    }).finding();
  EXPECT_NE(f.label, Label::bad_setting) << f.explanation;
}

TEST(BadSetting, AnUpdateThatIsMerelyLargeIsNot) {
  const Finding f = updated([&](const at::Tensor& w, const at::Tensor&) {
    w.sub_(w.grad(), 1e30);
    w.mul_(w);
  });
  EXPECT_NE(f.label, Label::bad_setting) << f.explanation;
}

TEST(BadSetting, ABadStateIsNot) {
  const at::Tensor w = leaf(at::tensor({1.f, 2.f})), v = at::tensor({kNaN, 1.0}).to(at::kFloat);
  StepState state;
  state.parameters = {{"w", w}};
  state.optimizer = {{"v", v}};
  const Incident incident(state, [&] {
    const at::Tensor loss = (w * w).sum();
    loss.backward();
    const at::NoGradGuard no_grad;
    const PhaseScope phase(Phase::optimizer);
    w.sub_(v * 0.1);
    return loss;
  });
  EXPECT_EQ(incident.finding().label, Label::bad_state);
}

/// What the program wrote into what a model computed, in each way of writing it.
TEST(BadSetting, ANumberThatIsWrittenIntoWhatWasComputed) {
  const at::Tensor w = leaf(at::randn({4, 3}));
  const at::Tensor mask = at::arange(4).unsqueeze(1) == 2;
  for (const auto& write : std::vector<std::function<at::Tensor(const at::Tensor&)>>{
           [&](const at::Tensor& h) { return h.masked_fill(mask, kNaN); },
           [&](const at::Tensor& h) { return at::where(mask, kNaN, h); },
           [&](const at::Tensor& h) {
             const at::Tensor copy = h.clone();
             copy[2].fill_(kNaN);
             return copy;
           },
           [&](const at::Tensor& h) {
             const at::Tensor copy = h.clone();
             copy[2].copy_(at::full({}, kNaN));
             return copy;
           },
           [&](const at::Tensor& h) {
             const at::Tensor copy = h.clone();
             copy.index_put_({at::tensor({2}, at::kLong)}, at::scalar_tensor(kNaN));
             return copy;
           },
           [&](const at::Tensor& h) { return h.index_fill(0, at::tensor({2}, at::kLong), kNaN); },
           [&](const at::Tensor& h) {
             return at::constant_pad_nd(h, {0, 1}, kNaN);
           }}) {
    StepState state;
    state.parameters = {{"w", w}};
    w.mutable_grad() = at::Tensor();
    const Verdict v = Incident(state, [&] {
                        const at::Tensor loss = write(w * 2).pow(2).mean();
                        loss.backward();
                        return loss;
                      }).verdict();
    EXPECT_EQ(v.cause, Label::bad_setting) << v.explanation;
    EXPECT_EQ(v.origin, Origin::op) << v.explanation;
    EXPECT_EQ(v.phase, Phase::forward);
  }
}

/// PyTorch computes the correction, of a beta that is a tensor.
TEST(BadSetting, ABetaOfOneThatIsATensor) {
  const at::Tensor beta = at::ones({}), kept = at::tensor({0.f, 1.f, 2.f});
  using Correction = std::function<at::Tensor(const at::Tensor& w)>;
  const auto finding = [&](const Correction& correction) {
    const at::Tensor m = kept.clone();
    return updated([&](const at::Tensor& w, const at::Tensor&) {
      m.mul_(0.9).add_(w.grad(), 0.1);
      w.sub_(m / correction(w) * 0.1);
    });
  };
  for (const Correction& correction : std::vector<Correction>{
           [&](const at::Tensor&) { return 1 - beta.pow(7); },
           [&](const at::Tensor&) { return at::rsub(at::pow(beta, at::full({}, 7.0)), 1); },
           [&](const at::Tensor&) { return at::ones({}) - at::scalar_tensor(1.0).pow(3).to(at::kFloat); }}) {
    const Finding f = finding(correction);
    EXPECT_EQ(f.label, Label::bad_setting) << f.explanation;
    EXPECT_NE(f.explanation.find("bias correction"), std::string::npos) << f.explanation;
  }
  // What is computed from gradients was not chosen.
  for (const Correction& correction :
       std::vector<Correction>{[](const at::Tensor& w) { return (w.grad() * 0).sum(); },
                               [](const at::Tensor& w) { return 1 - (w.grad() * 0 + 1).mean().pow(7); }}) {
    const Finding f = finding(correction);
    EXPECT_EQ(f.label, Label::div_zero) << f.explanation;
  }
}

/// The difference of a model and its copy is zero, and no mask.
TEST(BadSetting, AnInfiniteFactorOfWhatHappensToBeZero) {
  const at::Tensor w = leaf(at::randn({4, 3})), copy = w.detach().clone(), x = at::randn({5, 4});
  const auto difference = [&] { return at::mm(x, w) - at::mm(x, copy); };
  for (const auto& loss : std::vector<std::function<at::Tensor()>>{
           [&] { return -at::log_sigmoid(difference() * kInf).mean(); },
           [&] { return -at::log_sigmoid(difference() * at::full({}, kInf)).mean(); },
           [&] { return at::softplus(kInf * difference()).mean(); },
           [&] { return (difference() * kInf).abs().sum(); },
           [&] { return at::sigmoid(at::mul(difference(), at::scalar_tensor(kInf))).sum(); }}) {
    const Finding f = testing::found_in(w, loss);
    EXPECT_EQ(f.label, Label::bad_setting) << f.explanation;
  }
}

TEST(BadSetting, AnInfinityTimesAMaskIsZeroTimesInfinity) {
  const at::Tensor w = leaf(at::randn({2, 4})), keep = at::tensor({1.f, 0.f, 1.f, 1.f});
  for (const auto& mask : std::vector<std::function<at::Tensor()>>{
           [&] { return 1 - keep; }, [&] { return (keep == 0).to(at::kFloat); },
           [&] { return (w.detach() > 9).to(at::kFloat); }}) {
    const Finding f = testing::found_in(w, [&] { return (at::exp(w) + mask() * kInf).sum(); });
    EXPECT_EQ(f.label, Label::zero_times_inf) << f.explanation;
  }
}

/// A step whose weights, 3e20, are squared, times `factor`; before it were updates with these rates, after
/// each of which the weights had these norms.
Verdict after(const std::vector<double>& rates, const std::vector<double>& norms, float factor = 1) {
  const at::Tensor w = leaf(at::full({4}, 3e20f)), x = at::full({4}, factor);
  StepState state;
  state.parameters = {{"net.weight", w}};
  const Incident incident(state, [&] {
    const at::Tensor loss = ((x * x) * (w * w)).sum();
    loss.backward();
    return loss;
  });
  const Case made = incident.make();
  SnapshotDoc doc = made.doc();
  doc.step = static_cast<std::int64_t>(rates.size());
  doc.history = {{"scalars", {"step", "lr"}, {}},
                 {"weight_norm", {"net"}, norms},
                 {"weight_amax", {"net"}, norms},
                 {"update_ratio", {"net"}, {}}};
  for (std::size_t step = 0; step < rates.size(); ++step) {
    doc.history[0].values.push_back(static_cast<double>(step));
    doc.history[0].values.push_back(rates[step]);
    doc.history[3].values.push_back(step == 0 || norms[step] < 8 * norms[step - 1] ? 0.01 : 1e20);
  }
  return diagnose(made.with(doc), reproduction_of(verify(incident.replayer())), "memory");
}

TEST(BadSetting, AnEarlierRateThatMultipliedTheWeights) {
  for (const std::vector<double>& rates : {std::vector<double>{1e-3, 1e-3, 1e-3, 1e4},
                                           {1e-3, 1e-3, 1e-3, 3},
                                           {1e4, 1e4, 1e4, 1e4},
                                           {0, 0, 0, 300}}) {
    const Verdict v = after(rates, {2, 2, 2, 6e20});
    EXPECT_EQ(v.cause, Label::bad_setting) << v.explanation;
    EXPECT_EQ(v.origin, Origin::setting);
    EXPECT_EQ(v.culprit.op, "aten::mul");
    EXPECT_EQ(v.advice.find("Lower the learning rate"), 0u) << v.advice;
    EXPECT_NE(v.explanation.find("step 3"), std::string::npos) << v.explanation;
  }
}

TEST(BadSetting, NotTheRateOfWeightsThatItDidNotRuin) {
  const std::vector<double> usual = {1e-3, 1e-3, 1e-3, 1e-3};
  std::vector<double> borne(12, 300), norms(12, 2);
  norms.back() = 6e20;
  for (const Verdict& v : {after(usual, {2, 2, 2, 6e20}),                             // its gradient did it
                           after({1e-3, 1e-3, 1e-3, 1e4}, {6e20, 6e20, 6e20, 6e20}),  // as large before it
                           after(borne, norms),                                 // the rate had done no harm
                           after({1e-3, 1e4, 1e-3, 1e-3}, {2, 2, 2, 6e20})}) {  // another update's
    EXPECT_EQ(v.cause, Label::fp16_overflow) << v.explanation;
  }
  // With weights of their earlier size it fails as well: what multiplies them is too large.
  const Verdict v = after({1e-3, 1e-3, 1e-3, 1e4}, {2, 2, 2, 6e20}, 1e19f);
  EXPECT_EQ(v.cause, Label::fp16_overflow) << v.explanation;
}

}  // namespace
}  // namespace nanquest
