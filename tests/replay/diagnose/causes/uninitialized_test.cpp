// UNINITIALIZED: its sample, its variants, and what looks like it and is not.
#include <ATen/Context.h>

#include <algorithm>
#include <set>

#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kNaN;
using testing::leaf;

/// `empty` fills its memory with NaN while it lives: what lay there is then no matter of chance.
struct Filled {
  Filled() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true); }
  ~Filled() { at::globalContext().setDeterministicAlgorithms(false, false); }
};

TEST(Uninitialized, ItsSampleIsExplainedAndTheFixIsVerified) {
  const Verdict v = testing::sample_verdict("uninitialized", 1);
  EXPECT_EQ(v.cause, Label::uninitialized) << v.explanation;
  EXPECT_EQ(v.culprit.op, "aten::mm");
  EXPECT_EQ(v.culprit.module, "fc1");
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed && v.fix->minimal);
  EXPECT_FALSE(v.fix->advice.empty());
}

Finding finding_of(const std::function<at::Tensor(const at::Tensor& w)>& f, StepState state = {}) {
  const at::Tensor w = leaf(at::ones({4, 4})), other = leaf(at::ones({4, 4}));
  state.parameters = {{"w", w}, {"other", other}};
  const Incident incident(state, [&] {
    const at::Tensor loss = f(w) + (other * other).sum();
    loss.backward();
    return loss;
  });
  EXPECT_FALSE(incident.doc().culprit.value.empty());
  return incident.finding();
}

TEST(Uninitialized, ReadAsAWhole) {
  const Filled filled;
  const Finding f = finding_of([](const at::Tensor& w) { return (w * at::empty({4, 4})).sum(); });
  EXPECT_EQ(f.label, Label::uninitialized) << f.explanation;
  // The step itself handed it out.
  EXPECT_EQ(f.origin, Origin::op);
  EXPECT_EQ(f.phase, Phase::forward);
}

TEST(Uninitialized, LikeAnotherTensorInAnotherFormatAndThroughAView) {
  const Filled filled;
  const Finding f = finding_of([](const at::Tensor& w) {
    const at::Tensor buffer = at::empty_like(w.detach().to(at::kHalf));
    return (w.view({16}) * buffer.view({16})).sum();
  });
  EXPECT_EQ(f.label, Label::uninitialized) << f.explanation;
}

TEST(Uninitialized, PartlyWrittenInPlace) {
  const Filled filled;
  const Finding f = finding_of([](const at::Tensor& w) {
    const at::Tensor buffer = at::empty({4, 4});
    buffer.select(0, 1).fill_(2);
    return at::mm(w, buffer).sum();
  });
  EXPECT_EQ(f.label, Label::uninitialized) << f.explanation;
}

TEST(Uninitialized, FilledUpByIndices) {
  const Filled filled;
  const at::Tensor rows = at::tensor({0, 2}, at::kLong);
  const Finding f = finding_of([&](const at::Tensor& w) {
    const at::Tensor buffer = at::empty({4, 4});
    buffer.index_fill_(0, rows, 3);
    return at::mm(w, buffer).sum();
  });
  EXPECT_EQ(f.label, Label::uninitialized) << f.explanation;
}

/// A head that gets more rows after the update: the weight that replaces it is written in part.
TEST(Uninitialized, AStateThatTheStepMadeAndWroteInPart) {
  const Filled filled;
  const auto verdict = [](bool all) {
    const at::Tensor w = leaf(at::ones({4, 3}));
    StepState state;
    state.parameters = {{"w", w}};
    return Incident(state,
                    [&] {
                      const at::Tensor loss = (w * w).sum();
                      loss.backward();
                      const at::NoGradGuard no_grad;
                      const at::Tensor grown = at::empty({6, 3});
                      grown.narrow(0, 0, 4).copy_(w);
                      if (all) grown.narrow(0, 4, 2).fill_(1);
                      w.set_data(grown);
                      return loss;
                    })
        .verdict();
  };
  const Verdict v = verdict(false);
  ASSERT_TRUE(v.found) << v.explanation;
  EXPECT_EQ(v.cause, Label::uninitialized) << v.explanation;
  EXPECT_EQ(v.origin, Origin::parameter);
  EXPECT_EQ(v.culprit.tensor, "w");
  EXPECT_EQ(v.culprit.op, "aten::empty");
  EXPECT_NE(v.explanation.find("rows 4 to 5"), std::string::npos) << v.explanation;
  EXPECT_FALSE(verdict(true).found);
}

TEST(Uninitialized, ABufferWrittenBeforeItIsReadIsNot) {
  const Filled filled;
  const Finding f = finding_of([&](const at::Tensor& w) {
    const at::Tensor buffer = at::empty({4, 4});
    buffer.fill_(0);
    return at::log(w * buffer).sum();
  });
  EXPECT_EQ(f.label, Label::log_zero) << f.explanation;
}

TEST(Uninitialized, ATensorOfHostDataIsNot) {
  const Finding f = finding_of([&](const at::Tensor& w) {
    const at::Tensor made = at::empty({4, 4});
    auto* values = made.data_ptr<float>();
    for (int i = 0; i < 16; ++i) values[i] = i == 5 ? static_cast<float>(kNaN) : 1.f;
    return (w * made).sum();
  });
  EXPECT_NE(f.label, Label::uninitialized) << f.explanation;
}

at::Tensor written_with_nan() {
  const at::Tensor made = at::empty({4, 4});
  std::fill_n(made.data_ptr<float>(), 16, static_cast<float>(kNaN));
  return made;
}

/// What torch.tensor(list) is made of: the bytes are those of deterministic mode's fill, the call tells.
TEST(Uninitialized, ATensorOfNothingButNaNIsNot) {
  const Filled filled;
  for (const bool copied : {false, true}) {
    const Finding f = finding_of([&](const at::Tensor& w) {
      at::Tensor made = written_with_nan();
      if (copied) made = made.to(at::kDouble);  // as to another device
      made = at::lift_fresh(made);
      made.detach_();
      return (w * made).sum();
    });
    EXPECT_EQ(f.label, Label::bad_data) << copied << f.explanation;
  }
}

TEST(Uninitialized, WhatNumPyMayHaveWrittenIsOpen) {
  const Filled filled;
  const at::Tensor w = leaf(at::ones({4, 4}));
  const Verdict v = testing::trained(w, [&] {
                      const at::Tensor made = written_with_nan();
                      made.storage().unsafeGetStorageImpl()->set_resizable(false);  // as numpy() does
                      return (w * made).sum();
                    }).verdict();
  EXPECT_EQ(v.cause, Label::unknown) << v.explanation;
  std::set<Label> claimed;
  for (const Claim& claim : v.claims) claimed.insert(claim.cause);
  EXPECT_EQ(claimed, (std::set<Label>{Label::bad_data, Label::uninitialized})) << v.explanation;
}

TEST(Uninitialized, ABatchWithNaNIsNot) {
  at::Tensor x = at::ones({4, 4});
  x[1][2] = kNaN;
  StepState state;
  state.batch = {{"x", x}};
  EXPECT_EQ(finding_of([&](const at::Tensor& w) { return (w * x).sum(); }, state).label, Label::bad_data);
}

}  // namespace
}  // namespace nanquest
