// BAD_DATA: its sample, its variants, and what looks like it and is not.
#include <torch/csrc/autograd/custom_function.h>

#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

TEST(BadData, ItsSampleIsExplainedAndTheFixIsVerified) {
  testing::expect_sample("bad_data", {.cause = Label::bad_data,
                                      .phase = Phase::input,
                                      .op = "aten::mm",
                                      .module = "fc1",
                                      .origin = Origin::input,
                                      .precision = PrecisionVerdict::not_a_precision_matter,
                                      .poison = {4}});
}

using testing::Incident;
using testing::kInf;
using testing::kNaN;
using testing::leaf;

/// A step that multiplies `x` by a weight; `batch` names what it was given.
Verdict verdict_on(const at::Tensor& x, const NamedTensors& batch, const std::vector<std::string>& ids = {}) {
  const at::Tensor w = leaf(at::ones({4, 2})), other = leaf(at::ones({2}));
  StepState state;
  state.parameters = {{"w", w}, {"other", other}};
  state.batch = batch;
  state.sample_ids = ids;
  return testing::backward_of(state, [&] { return (at::mm(x.to(at::kFloat), w) * other).sum(); }).verdict();
}

TEST(BadData, EverySampleOfItIsNamed) {
  at::Tensor x = at::ones({5, 4});
  x[1][2] = kNaN, x[4][0] = kInf;
  const Verdict v = verdict_on(x, {{"x", x}}, {"a", "b", "c", "d", "e"});
  EXPECT_EQ(v.cause, Label::bad_data) << v.explanation;
  EXPECT_EQ(v.poison, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(v.poison_ids, (std::vector<std::string>{"b", "e"}));
}

TEST(BadData, InHalfPrecisionAndAnInfinityAlone) {
  at::Tensor x = at::ones({3, 4}, at::kHalf);
  x[2][3] = kInf;
  const Verdict v = verdict_on(x, {{"x", x}});
  EXPECT_EQ(v.cause, Label::bad_data) << v.explanation;
  EXPECT_EQ(v.poison, (std::vector<std::int64_t>{2}));
}

TEST(BadData, InASecondTensorOfTheBatch) {
  const at::Tensor w = leaf(at::ones({4})), x = at::ones({3, 4});
  at::Tensor weight = at::ones({3});
  weight[0] = kNaN;
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}, {"weight", weight}};
  const Verdict v = testing::backward_of(state, [&] { return (at::mv(x, w) * weight).sum(); }).verdict();
  EXPECT_EQ(v.cause, Label::bad_data) << v.explanation;
  EXPECT_EQ(v.culprit.tensor, "weight");
  EXPECT_EQ(v.poison, (std::vector<std::int64_t>{0}));
}

/// A loader's fault is in the input and in the target: mending either alone leaves the other. The walk back
/// from the loss follows the NaN and meets the infinity only when the NaN is gone.
TEST(BadData, AllThatTheBatchBroughtIsMendedAtOnce) {
  const at::Tensor w = leaf(at::ones({4, 2}));
  at::Tensor x = at::ones({3, 4}), target = at::ones({3, 2}), mask = at::zeros({3, 2});
  x[2][1] = kNaN, target[2][0] = kInf, mask[0][1] = -kInf;
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}, {"target", target}, {"mask", mask}};
  const Verdict v = testing::backward_of(state, [&] {
                      const at::Tensor out = at::mm(x, w);
                      return (out - target).square().mean() + (at::softmax(out + mask, 1) * out).mean();
                    }).verdict();
  EXPECT_EQ(v.cause, Label::bad_data) << v.explanation;
  EXPECT_EQ(v.culprit.tensor, "x");
  ASSERT_TRUE(v.fix.has_value()) << v.explanation;
  EXPECT_TRUE(v.fix->verified);
  EXPECT_EQ(v.fix->change,
            "non-finite elements of x replaced by zero; non-finite elements of target replaced by zero");
}

/// A mask leaves one sample nothing to attend to; the others hold the same infinity, and are well.
TEST(BadData, AnInfinityThatOtherSamplesBearIsNoBadData) {
  const at::Tensor w = leaf(at::ones({4, 4})), x = at::rand({3, 4});
  at::Tensor mask = at::zeros({3, 4});
  mask[0][1] = mask[2][3] = -kInf;
  mask[1].fill_(-kInf);
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}, {"mask", mask}};
  const Verdict v = testing::backward_of(state, [&] {
                      return at::softmax(at::mm(x, w) + mask, 1).square().sum();
                    }).verdict();
  EXPECT_NE(v.cause, Label::bad_data) << v.explanation;
  // One sample alone, whose infinity nothing can bear, is.
  mask[0][1] = mask[2][3] = 0;
  mask[1][0] = kInf;
  const Verdict bad = testing::backward_of(state, [&] {
                        return at::softmax(at::mm(x, w) + mask, 1).square().sum();
                      }).verdict();
  EXPECT_EQ(bad.cause, Label::bad_data) << bad.explanation;
}

/// The same where no other sample has an infinity: every other element of it opened leaves the rest harmless.
TEST(BadData, AnInfinityOfOneSampleThatIsAMaskIsNoBadData) {
  const at::Tensor w = leaf(at::ones({4, 4})), x = at::rand({3, 4});
  at::Tensor mask = at::zeros({3, 4});
  mask[1].fill_(-kInf);
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}, {"mask", mask}};
  const auto verdict = [&] {
    return testing::backward_of(state, [&] { return at::softmax(at::mm(x, w) + mask, 1).square().sum(); })
        .verdict();
  };
  EXPECT_NE(verdict().cause, Label::bad_data);
  mask[1].fill_(kInf);  // each of these alone does harm
  EXPECT_EQ(verdict().cause, Label::bad_data);
}

/// All of a batch that the model got is NaN: the program may have normalised it before, by operations that
/// are not on record.
TEST(BadData, ABatchThatIsBadAsAWholeNeedsAFactThatItWasLoaded) {
  const at::Tensor w = leaf(at::ones({4, 2})), x = at::full({3, 4}, kNaN);
  const auto verdict = [&](const std::vector<std::string>& ids,
                           const std::map<std::string, std::string>& notes) {
    StepState state;
    state.parameters = {{"w", w}};
    state.batch = {{"x", x}};
    state.sample_ids = ids;
    return testing::backward_of(state, [&] { return at::mm(x, w).sum(); }, notes).verdict();
  };
  const Verdict open = verdict({}, {});
  EXPECT_EQ(open.cause, Label::unknown) << open.explanation;
  ASSERT_TRUE(open.likely.has_value());
  EXPECT_EQ(open.likely->cause, Label::bad_data);
  EXPECT_TRUE(open.explanation.starts_with("The batch was bad when the model got it: x holds 12 NaN"))
      << open.explanation;
  EXPECT_EQ(verdict({"a", "b", "c"}, {}).cause, Label::bad_data);
  EXPECT_EQ(verdict({}, {{"lead_ops", "0"}}).cause, Label::bad_data);
}

/// An advantage that was normalised before the step, over a single sample.
TEST(BadData, ATensorThatNothingShowsToBeDataIsLeftOpen) {
  const at::Tensor w = leaf(at::ones({1, 2})), advantage = at::full({1}, kNaN);
  const auto verdict = [&](const std::vector<std::string>& ids, const at::Tensor& factor) {
    StepState state;
    state.parameters = {{"w", w}};
    state.batch = {{"x", at::ones({1, 2})}};
    state.sample_ids = ids;
    return testing::backward_of(state, [&] { return (w.sum(1) * factor).mean(); }).verdict();
  };
  const Verdict open = verdict({}, advantage);
  EXPECT_EQ(open.cause, Label::unknown) << open.explanation;
  ASSERT_TRUE(open.likely.has_value());
  EXPECT_EQ(open.likely->cause, Label::bad_data);
  EXPECT_NE(open.explanation.find("1 NaN of 1 elements"), std::string::npos) << open.explanation;
  // Any one number has a row for each of one sample.
  EXPECT_EQ(verdict({"17"}, advantage).cause, Label::unknown);
}

/// A loader drew the samples: that says nothing of a table, a constant or a mask that the program keeps.
TEST(BadData, WhatALoaderDrewIsTheirsByShapeOrUse) {
  const at::Tensor w = leaf(at::ones({4, 2})), x = at::ones({3, 4});
  const auto cause = [&](const at::Tensor& bad, const std::function<at::Tensor(const at::Tensor&)>& scaled) {
    w.mutable_grad().reset();
    StepState state;
    state.parameters = {{"w", w}};
    state.batch = {{"x", x}};
    state.sample_ids = {"a", "b", "c"};
    return testing::backward_of(state, [&] { return (at::mm(x, w) * scaled(bad)).sum(); }).verdict().cause;
  };
  const auto as_it_is = [](const at::Tensor& t) { return t; };
  EXPECT_EQ(cause(at::full({3, 1}, kNaN), as_it_is), Label::bad_data);  // a weight of each sample
  const at::Tensor one = at::full({2}, kNaN);                           // collated of samples
  EXPECT_EQ(cause(one,
                  [](const at::Tensor& t) {
                    return at::stack({t, at::ones({2}), at::ones({2})});
                  }),
            Label::bad_data);
  const at::Tensor classes = at::zeros({3}, at::kLong);  // a weight of each class, by the samples' classes
  EXPECT_EQ(
      cause(at::full({5, 1}, kNaN), [&](const at::Tensor& t) { return at::index_select(t, 0, classes); }),
      Label::unknown);
  EXPECT_EQ(cause(at::full({2}, kNaN), as_it_is), Label::unknown);     // a weight of each class
  EXPECT_EQ(cause(at::full({}, kNaN), as_it_is), Label::bad_setting);  // a number
}

/// A transport plan that NumPy computed from the step's own costs: no op made it, although all ops are on
/// record.
TEST(BadData, WhatNoModelWasCalledWithMayComeFromOutsideOfPyTorch) {
  const at::Tensor w = leaf(at::ones({2, 2})), plan = at::full({2, 2}, kNaN);
  StepState state;
  const Verdict v =
      testing::backward_of(state, [&] { return (w.square() * plan).sum(); }, {{"lead_ops", "0"}}).verdict();
  EXPECT_EQ(v.cause, Label::unknown) << v.explanation;
  ASSERT_TRUE(v.likely.has_value());
  EXPECT_EQ(v.likely->cause, Label::bad_data);
}

TEST(BadData, NaNThatTheProgramWritesIntoItsTargetDuringTheStep) {
  const at::Tensor w = leaf(at::ones({4})), target = at::ones({4});
  const Verdict v = testing::trained(w, [&] {
                      const at::Tensor made = w * 2, noisy = target + 1;
                      noisy[3] = kNaN;
                      return (made - noisy).square().sum();
                    }).verdict();
  EXPECT_EQ(v.cause, Label::bad_data) << v.explanation;
  EXPECT_EQ(v.origin, Origin::input);
  EXPECT_EQ(v.culprit.op, "aten::fill_");
  EXPECT_NE(v.explanation.find("wrote NaN into its data"), std::string::npos) << v.explanation;
  EXPECT_TRUE(v.fix.has_value()) << v.advice;
}

TEST(BadData, NaNThatIsWrittenIntoWhatTheModelMadeIsNoData) {
  const at::Tensor w = leaf(at::ones({4}));
  const Verdict v = testing::trained(w, [&] {
                      const at::Tensor hidden = w * 2;
                      hidden.masked_fill_(at::arange(4) == 1, kNaN);
                      return hidden.square().sum();
                    }).verdict();
  EXPECT_EQ(v.cause, Label::bad_setting) << v.explanation;
  EXPECT_EQ(v.origin, Origin::op);
}

TEST(BadData, WhatTheProgramItselfFilledDuringTheStep) {
  // As torch.tensor(list of numbers) does: memory of the step, written by no operation.
  const at::Tensor w = leaf(at::ones({4}));
  const Incident incident = testing::trained(w, [&] {
    const at::Tensor returns = at::empty({4});
    for (int i = 0; i < 4; ++i)
      returns.data_ptr<float>()[i] = i < 2 ? static_cast<float>(kInf) : 1.0f + static_cast<float>(i);
    return (w * (returns - returns.mean())).sum();
  });
  const Verdict v = incident.verdict();
  EXPECT_EQ(v.cause, Label::bad_data) << v.explanation;
  EXPECT_EQ(v.culprit.op, "aten::mean");
  EXPECT_EQ(v.origin, Origin::input);
  EXPECT_NE(v.explanation.find("2 Inf of 4 elements"), std::string::npos) << v.explanation;
  EXPECT_EQ(v.explanation.find("before any op ran"), std::string::npos) << v.explanation;
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_TRUE(v.fix->verified) << v.fix->advice;
  testing::expect_healed(incident, Label::bad_data, "aten::mean");
}

TEST(BadData, AlsoWhereTheTensorIsDetachedInPlaceAsPythonsAre) {
  // What torch.tensor(list) is made of.
  const at::Tensor w = leaf(at::ones({4}));
  const Incident incident = testing::trained(w, [&] {
    at::Tensor returns = at::empty({4});
    for (int i = 0; i < 4; ++i)
      returns.data_ptr<float>()[i] = i < 2 ? static_cast<float>(kInf) : 1.0f + static_cast<float>(i);
    returns.detach_();
    returns = at::lift_fresh(returns);
    return (w * (returns - returns.mean())).sum();
  });
  testing::expect_healed(incident, Label::bad_data, "aten::mean");
}

at::Tensor host_numbers(float first) {
  const at::Tensor made = at::empty({4});
  for (int i = 0; i < 4; ++i) made.data_ptr<float>()[i] = i == 0 ? first : 1.0f;
  return made;
}

void expect_open(const Verdict& v, const std::string& why) {
  EXPECT_EQ(v.cause, Label::unknown) << v.explanation;
  ASSERT_TRUE(v.likely.has_value()) << v.explanation;
  EXPECT_EQ(v.likely->cause, Label::bad_data);
  EXPECT_NE(v.explanation.find(why), std::string::npos) << v.explanation;
}

TEST(BadData, NumbersCopiedIntoABufferInAModuleMayBeAStateThatWasLoaded) {
  const at::Tensor w = leaf(at::ones({4})), bank = at::ones({4});
  StepState state;
  state.parameters = {{"w", w}};
  state.buffers = {{"bank", bank}};
  expect_open(testing::backward_of(state,
                                   [&] {
                                     const ModuleScope inside("memory");
                                     bank.copy_(host_numbers(static_cast<float>(kNaN)));
                                     return (w * bank).sum();
                                   })
                  .verdict(),
              "copied into");
}

/// Its gradient is computed by the program itself, outside of PyTorch.
struct OwnDerivative : torch::autograd::Function<OwnDerivative> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.sin(); }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               const torch::autograd::tensor_list& sent) {
    return {sent[0] * host_numbers(static_cast<float>(kNaN))};
  }
};

TEST(BadData, NumbersThatComeInDuringBackwardMayBeADerivative) {
  const at::Tensor w = leaf(at::ones({4}));
  expect_open(testing::trained(w, [&] { return OwnDerivative::apply(w).sum(); }).verdict(),
              "during backward");
}

TEST(BadData, ABadWeightIsNot) {
  at::Tensor values = at::ones({4});
  values[1] = kNaN;
  const at::Tensor w = leaf(values), x = at::ones({3, 4});
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}};
  EXPECT_EQ(testing::backward_of(state, [&] { return at::mv(x, w).sum(); }).finding().label,
            Label::bad_state);
}

TEST(BadData, LargeButFiniteDataIsNot) {
  const at::Tensor x = at::full({3, 4}, 1e38f);
  EXPECT_NE(verdict_on(x, {{"x", x}}).cause, Label::bad_data);
}

TEST(BadData, AMaskOfInfinitiesIsNot) {
  const at::Tensor w = leaf(at::zeros({3}));
  const at::Tensor mask = at::full({3}, -kInf);
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"mask", mask}};
  EXPECT_EQ(
      testing::backward_of(state, [&] { return at::softmax(w + mask, 0).pow(2).sum(); }).finding().label,
      Label::all_masked_row);
}

}  // namespace
}  // namespace nanquest
