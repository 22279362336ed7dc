// The origin of a bad value that the step did not compute, in real steps.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/record/programs.h"

namespace nanquest {
namespace {

using testing::culprit_op;
using testing::kInf;
using testing::kNaN;
using testing::leaf;
using testing::TinyNet;

at::Tensor with(at::Tensor t, float value) {
  t.view({-1})[0] = value;
  return t;
}

TEST(Origins, AnUnnamedConstantIsAnInputNamedByItsFirstReader) {
  TinyNet net;
  const at::Tensor weights = with(at::ones({6, 4}), kNaN);
  const Recording rec = record_step(net.state(), [&] {
    const ModuleScope scope("encoder.0", "Block");
    const at::Tensor loss = at::mul(at::linear(at::linear(net.x, net.w1).relu(), net.w2), weights).sum();
    loss.backward();
    return loss;
  });
  EXPECT_EQ(rec.doc.culprit.origin, "input");
  EXPECT_EQ(rec.doc.culprit.phase, Phase::input);
  EXPECT_EQ(rec.doc.culprit.tensor_name, "tensor first read by aten::mul in encoder.0, argument other");
  EXPECT_EQ(culprit_op(rec.doc).name, "aten::mul");
  EXPECT_EQ(rec.doc.culprit.count, 1u);
}

TEST(Origins, AnUnnamedMaskOfNegativeInfinitiesIsPassedOver) {
  const at::Tensor scores = leaf(at::randn({3, 3}));
  const at::Tensor mask = at::full({3, 3}, -kInf).triu(1);
  const Recording rec = record_step({}, [&] {
    const at::Tensor loss = at::softmax(scores + mask, 1).square().sum();
    loss.backward();
    return loss;
  });
  EXPECT_EQ(rec.doc.culprit.op, kNone) << rec.doc.culprit.origin;
}

TEST(Origins, AWeightWithoutANameIsAParameterAllTheSame) {
  const at::Tensor w = leaf(with(at::ones({4}), kNaN)), x = at::ones({4});
  const Recording rec = record_step({}, [&] {
    const at::Tensor loss = (w * x).sum();
    loss.backward();
    return loss;
  });
  EXPECT_EQ(rec.doc.culprit.origin, "parameter");
  EXPECT_EQ(rec.doc.culprit.phase, Phase::input);
}

TEST(Origins, WhatTheHostWroteBehindTheDispatcherIsAnInput) {
  for (const float value : {kNaN, kInf}) {
    const at::Tensor w = leaf(at::ones({64}));
    const Recording rec = record_step({}, [&] {
      const at::Tensor x = at::empty({64});
      for (int i = 0; i < 64; ++i) x.data_ptr<float>()[i] = i == 5 ? value : 1.f;
      const at::Tensor loss = (w * x).sum();
      loss.backward();
      return loss;
    });
    EXPECT_EQ(rec.doc.culprit.origin, "input") << value;
    EXPECT_EQ(rec.doc.culprit.phase, Phase::input);
    EXPECT_EQ(culprit_op(rec.doc).name, "aten::mul");
    EXPECT_EQ(rec.doc.culprit.first, std::vector<std::int64_t>{5});
  }
}

TEST(Origins, ANamedBatchThatTheHostRefilledKeepsItsName) {
  TinyNet net;
  at::Tensor memory = at::zeros({6, 8});
  net.x = at::from_blob(memory.data_ptr(), {6, 8});
  const Recording rec = record_step(net.state(), [&] {
    (void)net.x.sum();  // finite at its first read
    memory.data_ptr<float>()[3] = kNaN;
    return net.step();
  });
  EXPECT_EQ(rec.doc.culprit.origin, "input");
  EXPECT_EQ(rec.doc.culprit.tensor_name, "x");
}

TEST(Origins, AGradientThatWasBadBeforeTheStep) {
  for (const bool named : {true, false}) {
    TinyNet net;
    net.w1.mutable_grad() = with(at::zeros({16, 8}), kNaN);
    StepState state = net.state();
    if (!named) state.parameters.clear();
    const Recording rec = record_step(state, [&] {
      const at::Tensor loss = net.step();
      net.w1.data().sub_(net.w1.grad(), 0.1);
      return loss;
    });
    EXPECT_EQ(rec.doc.culprit.origin, "gradient");
    EXPECT_EQ(rec.doc.culprit.phase, Phase::input);
    if (named) {
      EXPECT_EQ(rec.doc.culprit.tensor_name, "hidden.weight");
    }
  }
}

TEST(Origins, ALossScaleThatIsNoScale) {
  for (const float value : {kNaN, kInf, 0.f}) {
    TinyNet net;
    const at::Tensor scale = at::full({}, value);
    StepState state = net.state();
    state.extra = {{"loss_scale", scale}};
    const Recording rec = record_step(state, [&] {
      const at::Tensor loss = net.loss();
      (loss * scale).backward();
      const at::Tensor inverse = scale.to(at::kDouble).reciprocal().to(at::kFloat);  // as GradScaler does
      for (at::Tensor* p : {&net.w1, &net.b1, &net.w2}) p->mutable_grad().mul_(inverse);
      net.w1.data().sub_(net.w1.grad(), 0.1);
      return loss;
    });
    EXPECT_EQ(rec.doc.culprit.origin, "loss_scale") << value;
    EXPECT_EQ(rec.doc.culprit.phase, Phase::input);
    EXPECT_EQ(rec.doc.culprit.tensor_name, "loss_scale");
    EXPECT_FALSE(rec.doc.culprit.value.empty());
  }
}

TEST(Origins, ALossScaleThatIsANumber) {
  TinyNet net;
  StepState state = net.state();
  state.loss_scale = kInf;
  const Recording rec = record_step(state, [&] {
    const at::Tensor loss = net.loss();
    (loss * static_cast<double>(kInf)).backward();
    return loss;
  });
  EXPECT_EQ(rec.doc.culprit.origin, "loss_scale");
}

TEST(Origins, ABufferThatTheStepSpoiledIsHarmAndAMaskInItIsNot) {
  for (const bool mask : {false, true}) {
    TinyNet net;
    at::Tensor seen = at::zeros({6});
    StepState state = net.state();
    state.buffers = {{"seen", seen}};
    const Recording rec = record_step(state, [&] {
      const at::Tensor loss = net.step();
      const at::NoGradGuard no_grad;
      if (mask)
        seen.copy_(at::zeros({6}).masked_fill(at::ones({6}, at::kBool), -kInf));
      else
        seen.mul_(0.9).add_((net.x.select(1, 0) * 0).log(), 0.1);
      return loss;
    });
    if (mask) {
      EXPECT_EQ(rec.doc.culprit.op, kNone);
      continue;
    }
    EXPECT_EQ(culprit_op(rec.doc).name, "aten::log");
    EXPECT_EQ(rec.doc.culprit.origin, "op");
  }
}

TEST(Origins, ABufferThatWasBadBeforeOrIsMendedIsNoHarmOfTheStep) {
  TinyNet net;
  at::Tensor history = at::full({4}, kNaN), mended = at::zeros({4});
  StepState state = net.state();
  state.buffers = {{"history", history}, {"mended", mended}};
  const Recording rec = record_step(state, [&] {
    const at::Tensor loss = net.step();
    const at::NoGradGuard no_grad;
    history.copy_(at::roll(history, 1));
    history[0].copy_(loss);
    mended.log_();
    mended.nan_to_num_(0, 0, 0);
    return loss;
  });
  EXPECT_EQ(rec.doc.culprit.op, kNone);
}

}  // namespace
}  // namespace nanquest
