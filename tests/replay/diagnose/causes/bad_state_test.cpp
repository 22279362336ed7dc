// BAD_STATE: its sample, its variants, and what looks like it and is not.
#include <torch/csrc/autograd/custom_function.h>

#include "probe/observe/step_scope.h"
#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kNaN;
using testing::leaf;

TEST(BadState, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("bad_state", {.cause = Label::bad_state,
                                       .phase = Phase::input,
                                       .op = "aten::add",
                                       .module = "norm",
                                       .origin = Origin::buffer,
                                       .precision = PrecisionVerdict::not_a_precision_matter});
}

/// A weight with NaN in step 7, and what the probe has noted of its model.
Verdict noted(const std::map<std::string, std::string>& notes, std::int64_t step = 7) {
  at::Tensor values = at::ones({3, 3});
  values[1][1] = kNaN;
  const at::Tensor w = leaf(values), x = at::ones({2, 3});
  StepState state;
  state.step = step;
  state.parameters = {{"fc.weight", w}};
  state.batch = {{"x", x}};
  return testing::backward_of(state, [&] { return at::mm(x, w).sum(); }, notes).verdict();
}

TEST(BadState, ParameterIsNamed) {
  const Verdict v = noted({});
  EXPECT_EQ(v.cause, Label::bad_state);
  EXPECT_EQ(v.origin, Origin::parameter);
  EXPECT_EQ(v.phase, Phase::input);
  EXPECT_EQ(v.culprit.tensor, "fc.weight");
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::not_a_precision_matter);
}

TEST(BadState, IsNamedWhereAFactSaysWhereItComesFrom) {
  for (const std::map<std::string, std::string>& notes :
       {std::map<std::string, std::string>{{"model_since.", "0"}},
        {{"model_since.", "7 loaded"}},
        {{"model_since.", "7"}, {"model_since.fc.", "2"}},
        {{"model_since.", "7 loaded but fc.bias;x"}},
        {{"model_since.", "0 loaded"}, {"bad_from_beginning", "parameter fc.weight"}},
        {{"model_since.", "0"}, {"bad_from_beginning", "buffer fc.weight;parameter w"}}}) {
    const Verdict v = noted(notes);
    EXPECT_EQ(v.cause, Label::bad_state) << notes.begin()->second << ": " << v.explanation;
  }
}

TEST(BadState, IsLeftOpenWhereItMayNeverHaveBeenWritten) {
  for (const std::map<std::string, std::string>& notes :
       {std::map<std::string, std::string>{{"model_since.", "7"}},
        {{"model_since.", "7 loaded but x;fc.weight"}},
        {{"model_since.", "0"}, {"weight_since.fc.weight", "7"}},
        {{"model_since.", "0"}, {"bad_from_beginning", "buffer m;parameter fc.weight"}}}) {
    const Verdict v = noted(notes);
    EXPECT_EQ(v.cause, Label::unknown) << notes.begin()->second << ": " << v.explanation;
    ASSERT_TRUE(v.likely.has_value());
    EXPECT_EQ(v.likely->cause, Label::bad_state);
    ASSERT_EQ(v.claims.size(), 2u);
    EXPECT_EQ(v.claims[1].cause, Label::uninitialized);
    // What is known comes first, and the advice says what to look at.
    EXPECT_TRUE(v.explanation.starts_with(
        "The step began with a bad value: fc.weight (parameters) already held 1 NaN of 9 elements."))
        << v.explanation;
    ASSERT_TRUE(v.fix.has_value());
    EXPECT_NE(v.fix->advice.find("load_state_dict"), std::string::npos) << v.fix->advice;
  }
  EXPECT_EQ(noted({}, /*step=*/0).cause, Label::unknown);
}

/// With the bits with which deterministic mode fills new memory, that is the first claim.
TEST(BadState, TheFillOfNewMemoryIsMoreLikelyNeverWritten) {
  const Verdict v = noted({{"model_since.", "7"}, {"deterministic_algorithms", "true"}});
  EXPECT_EQ(v.cause, Label::unknown) << v.explanation;
  ASSERT_TRUE(v.likely.has_value());
  EXPECT_EQ(v.likely->cause, Label::uninitialized);
  EXPECT_EQ(noted({{"model_since.", "2"}, {"deterministic_algorithms", "true"}}).cause, Label::bad_state);
}

/// The program's own, outside of PyTorch: its result requires a gradient, and no operation made it.
struct OwnForward : torch::autograd::Function<OwnForward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor&) {
    static float made[4] = {1, static_cast<float>(kNaN), 1, 1};
    return at::from_blob(made, {4});
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               const torch::autograd::tensor_list& sent) {
    return {sent[0] * 2};
  }
};

TEST(BadState, WhatCodeOutsideOfPyTorchMadeIsNoWeight) {
  const at::Tensor w = leaf(at::ones({4}));
  StepState state;
  state.step = 7;
  state.parameters = {{"w", w}};
  const Verdict v =
      testing::backward_of(state, [&] { return OwnForward::apply(w * 2).tanh().sum(); }).verdict();
  EXPECT_EQ(v.cause, Label::unknown) << v.explanation;
  EXPECT_TRUE(v.explanation.starts_with("No operation on record made this value: ")) << v.explanation;
}

TEST(BadState, AVarianceBelowZero) {
  const at::Tensor w = leaf(at::randn({4, 3})), mean = at::zeros({3}),
                   variance = at::tensor({1.f, -1.f, 1.f});
  StepState state;
  state.parameters = {{"w", w}};
  state.buffers = {{"norm.running_mean", mean}, {"norm.running_var", variance}};
  const Verdict v =
      Incident(state, [&] {
        const at::Tensor loss =
            at::batch_norm(w, {}, {}, mean, variance, /*training=*/false, 0.1, 1e-5, false).square().sum();
        loss.backward();
        return loss;
      }).verdict();
  EXPECT_EQ(v.cause, Label::bad_state) << v.explanation;
  EXPECT_NE(v.explanation.find("norm.running_var"), std::string::npos) << v.explanation;
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_NE(v.fix->change.find("absolute values"), std::string::npos);
}

TEST(BadState, MomentsInAnUpdateAndOverLists) {
  for (const bool list : {false, true}) {
    const at::Tensor w = leaf(at::ones({3}));
    at::Tensor moment = at::ones({3});
    moment[2] = kNaN;
    StepState state;
    state.parameters = {{"w", w}};
    state.optimizer = {{"exp_avg of w", moment}};
    const Verdict v =
        Incident(state, [&] {
          const at::Tensor loss = (w * w).sum();
          loss.backward();
          const at::NoGradGuard no_grad;
          const PhaseScope phase(Phase::optimizer);
          if (list)
            at::_foreach_add_(std::vector<at::Tensor>{w}, std::vector<at::Tensor>{moment}, -0.1);
          else
            w.sub_(moment, 0.1);
          return loss;
        }).verdict();
    EXPECT_EQ(v.cause, Label::bad_state) << v.explanation;
    EXPECT_EQ(v.origin, Origin::optimizer_state);
    EXPECT_EQ(v.culprit.tensor, "exp_avg of w");
  }
}

/// Loaded, or aggregated in NumPy: no operation computed the numbers, and they are a weight from then on.
TEST(BadState, WhatTheProgramCopiesIntoItsState) {
  const at::Tensor bad = at::tensor({1.f, std::numeric_limits<float>::quiet_NaN()});
  const auto verdict =
      [](const std::function<void(const at::Tensor&, const at::Tensor&, const at::Tensor&)>& load) {
        const at::Tensor w = leaf(at::ones({2})), bias = leaf(at::ones({2})), mean = at::zeros({2});
        StepState state;
        state.parameters = {{"w", w}, {"bias", bias}};
        state.buffers = {{"mean", mean}};
        return testing::backward_of(state,
                                    [&] {
                                      {
                                        const at::NoGradGuard no_grad;
                                        load(w, bias, mean);
                                      }
                                      return ((w - mean) * 3 + bias).square().sum();
                                    })
            .verdict();
      };
  const auto expect = [](const Verdict& v, Origin origin, const std::string& name) {
    EXPECT_EQ(v.cause, Label::bad_state) << v.explanation;
    EXPECT_EQ(v.origin, origin);
    EXPECT_EQ(v.phase, Phase::input);
    EXPECT_NE(v.explanation.find(name), std::string::npos) << v.explanation;
    EXPECT_TRUE(v.fix.has_value()) << v.explanation;
  };
  const at::Tensor other = bad.clone();
  expect(verdict([&](const at::Tensor& w, const at::Tensor& bias, const at::Tensor&) {
           w.copy_(bad);
           bias.copy_(other);
         }),
         Origin::parameter, "into w (parameter)");
  expect(verdict([&](const at::Tensor& w, const at::Tensor&, const at::Tensor&) {
           w.copy_(bad.to(at::kDouble).to(at::kFloat));
         }),
         Origin::parameter, "into w (parameter)");
  expect(verdict([&](const at::Tensor&, const at::Tensor&, const at::Tensor& mean) { mean.copy_(bad); }),
         Origin::buffer, "into mean (buffer)");
  // Codes of a quantised checkpoint; 127 is the NaN of this format.
  const at::Tensor codes = at::tensor({56, 127}, at::kByte), scale = at::full({}, 0.5);
  for (const auto& scaled :
       {std::function<at::Tensor(const at::Tensor&)>([](const at::Tensor& t) { return t * 0.5; }),
        std::function<at::Tensor(const at::Tensor&)>([&](const at::Tensor& t) { return t / scale; })}) {
    const Verdict v = verdict([&](const at::Tensor& w, const at::Tensor&, const at::Tensor&) {
      w.copy_(scaled(codes.view(at::kFloat8_e4m3fn).to(at::kFloat)));
    });
    EXPECT_EQ(v.cause, Label::bad_state) << v.explanation;
    EXPECT_EQ(v.origin, Origin::parameter);
  }
  // What is computed of several tensors is not what was loaded.
  const at::Tensor factors = at::tensor({2.f, 3.f});
  EXPECT_NE(verdict([&](const at::Tensor& w, const at::Tensor&, const at::Tensor&) {
              w.copy_(bad * factors);
            }).cause,
            Label::bad_state);
}

/// The log of the share of a class without samples. It was there in 34 healthy steps; the factor 0 is new. A
/// table of which each step picks some elements may be met at the infinity for the first time.
TEST(BadState, AnInfinityThatIsMeantIsNot) {
  const at::Tensor prior = at::tensor({-0.6f, -1.4f, -4.f, -std::numeric_limits<float>::infinity()});
  const auto cause = [&](const at::Tensor& kept, const std::map<std::string, std::string>& notes,
                         const std::function<at::Tensor(const at::Tensor&)>& use) {
    const at::Tensor w = leaf(at::ones({4}));
    StepState state;
    state.step = 34;
    state.parameters = {{"w", w}};
    state.buffers = {{"prior", kept}};
    return Incident(
               state,
               [&] {
                 const at::Tensor loss = at::log_softmax(w + use(kept), 0)[0];
                 loss.backward();
                 return loss;
               },
               notes)
        .verdict()
        .cause;
  };
  const std::map<std::string, std::string> began = {{"model_since.", "0"},
                                                    {"bad_from_beginning", "buffer prior"}};
  const auto scaled = [](const at::Tensor& t) { return t * 0.0; };
  const auto picked = [](const at::Tensor& t) {
    const at::Tensor some = at::index_select(t, 0, at::tensor({3, 3, 1, 0}));
    return some - some;
  };
  EXPECT_EQ(cause(prior, began, scaled), Label::zero_times_inf);
  EXPECT_EQ(cause(prior, began, picked), Label::bad_state);
  EXPECT_EQ(cause(prior, {{"model_since.", "0"}}, scaled), Label::bad_state);  // it came later
  at::Tensor unwritten = prior.clone();
  unwritten[3] = kNaN;
  EXPECT_EQ(cause(unwritten, began, scaled), Label::unknown);
}

TEST(BadState, ABadBatchThatIsCopiedIntoAFixedPlaceIsNot) {
  const at::Tensor w = leaf(at::ones({2})), place = at::zeros({2});
  const at::Tensor x = at::tensor({1.f, std::numeric_limits<float>::quiet_NaN()});
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}};
  EXPECT_EQ(testing::backward_of(state,
                                 [&] {
                                   place.copy_(x);
                                   return (w * place).sum();
                                 })
                .finding()
                .label,
            Label::bad_data);
}

TEST(BadState, ABadBatchIsNot) {
  const at::Tensor w = leaf(at::ones({3}));
  at::Tensor x = at::ones({3});
  x[0] = kNaN;
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}};
  EXPECT_EQ(Incident(state,
                     [&] {
                       const at::Tensor loss = (w * x).sum();
                       loss.backward();
                       return loss;
                     })
                .finding()
                .label,
            Label::bad_data);
}

TEST(BadState, AZeroWeightIsNot) {
  const at::Tensor w = leaf(at::tensor({0.f, 1.f}));
  StepState state;
  state.parameters = {{"w", w}};
  EXPECT_EQ(Incident(state,
                     [&] {
                       const at::Tensor loss = at::log(w).sum();
                       loss.backward();
                       return loss;
                     })
                .finding()
                .label,
            Label::log_zero);
}

}  // namespace
}  // namespace nanquest
