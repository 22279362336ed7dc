// "No harmful NaN or Inf in this step" is only said of a step whose values were all looked at.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/replay/diagnose/incident.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kInf;
using testing::leaf;

/// A step of a table with sparse gradients, which are multiplied by `scale` before they are used.
struct SparseStep {
  at::Tensor table = leaf(at::ones({5, 3}));
  StepState state;
  double scale;

  explicit SparseStep(double by) : scale(by) {
    state.step = 8;
    state.parameters = {{"table", table}};
  }
  at::Tensor operator()() {
    const at::Tensor rows = at::embedding(table, at::tensor({1, 3}, at::kLong), -1, false, /*sparse=*/true);
    const at::Tensor loss = rows.square().sum();
    loss.backward();
    table.mutable_grad().mul_(scale);
    return loss;
  }
};

/// Products with a sparse matrix from outside: what comes out of them is on record.
struct GraphStep {
  at::Tensor weight = leaf(at::ones({3, 2}));
  at::Tensor edges = at::sparse_coo_tensor(at::tensor({0, 2, 1, 0}, at::kLong).view({2, 2}),
                                           at::tensor({1.5f, -2.f}), {3, 3});
  StepState state;

  GraphStep() { state.parameters = {{"weight", weight}}; }
  at::Tensor operator()() {
    const at::Tensor loss = at::_sparse_mm(edges, weight).square().sum();
    loss.backward();
    return loss;
  }
};

/// What the program makes of a recording.
struct Said {
  testing::Output text, brief;
  std::string markdown;
  nlohmann::json json;
};

Said said_of(const Recording& recording, const std::string& name) {
  const testing::Scratch scratch("unseen_" + name);
  const std::string file = scratch / "step.h5";
  EXPECT_TRUE(write_snapshot(recording, file));
  const std::string program = std::string(NANQUEST_REPLAY) + " -q '" + file + "'";
  Said said;
  said.text = testing::run_program(program, scratch);
  said.brief = testing::run_program(program + " --brief --no-files", scratch);
  said.markdown = testing::slurp(scratch / "step.md");
  said.json = nlohmann::json::parse(testing::slurp(scratch / "step.json"));
  return said;
}

template <class Step>
Recording recorded(Step& step, bool watch) {
  Recording recording = record_step(step.state, [&] { return step(); }, {.watch = watch, .stacks = false});
  if (!watch) recording.doc.basis = "survivors";
  return recording;
}

TEST(Unseen, TheValuesOfASparseGradientAreLookedAt) {
  for (const bool watch : {true, false}) {
    SparseStep step(2.0);
    const Recording recording = recorded(step, watch);
    const Said said = said_of(recording, "healthy_gradient");
    EXPECT_EQ(said.text.code, 0) << said.text.out;
    EXPECT_NE(said.text.out.find("no harmful NaN or Inf in this step"), std::string::npos) << said.text.out;
    EXPECT_FALSE(said.json.contains("unseen")) << said.text.out;
    EXPECT_EQ(said.json["reproduction"]["bit_exact"], true) << said.text.out;

    // On record are the gradient's own values.
    const auto& doc = recording.doc;
    ASSERT_EQ(doc.gradients.size(), 1u);
    const TensorRow& row = doc.tensors[static_cast<std::size_t>(doc.gradients[0])];
    ASSERT_NE(row.stats, kNone);
    const StatsRow& stats = doc.stats[static_cast<std::size_t>(row.stats)];
    EXPECT_EQ(stats.amax, step.table.grad()._values().abs().max().item<double>());
    EXPECT_EQ(stats.count, static_cast<std::uint64_t>(step.table.grad()._values().numel()));
  }
}

TEST(Unseen, ABadSparseGradientIsFoundWhereItWasMade) {
  for (const bool watch : {true, false}) {
    SparseStep step(kInf);
    const Said said = said_of(recorded(step, watch), "bad_gradient");
    ASSERT_TRUE(step.table.grad()._values().isinf().any().item<bool>());
    EXPECT_EQ(said.text.code, 1);
    EXPECT_EQ(said.text.out.find("NOT SEEN"), std::string::npos) << said.text.out;
    EXPECT_EQ(said.json["found"], true);
    EXPECT_EQ(said.json["culprit"]["op"], "aten::mul_") << said.text.out;
    EXPECT_FALSE(said.json.contains("unseen")) << said.text.out;
  }
}

/// The step as if the gradient, and what multiplied it, were in memory that can't be read.
Recording hidden_gradient(Recording recording) {
  SnapshotDoc& doc = recording.doc;
  const auto hide = [&](std::int32_t row) {
    TensorRow& tensor = doc.tensors[static_cast<std::size_t>(row)];
    tensor.flags = kTensorOpaque;
    tensor.slot = tensor.stats = kNone;
  };
  for (const std::int32_t row : doc.gradients) hide(row);
  for (OpRow& op : doc.ops)
    if (op.name == "aten::mul_") {
      for (std::int32_t i = 0; i < op.arg_count; ++i)
        if (const ArgRow& arg = doc.args[static_cast<std::size_t>(op.first_arg + i)]; arg.tensor != kNone)
          hide(arg.tensor);
      for (std::int32_t i = 0; i < op.output_count; ++i) hide(op.first_output + i);
      op.written_count = 0;
      op.flags = kOpOpaque;
      op.host_data.clear();
    }
  doc.culprit = {};
  return recording;
}

TEST(Unseen, AGradientThatNobodyCouldLookAtIsNoGoodGradient) {
  for (const bool watch : {true, false})
    for (const double scale : {1.0, kInf}) {
      SparseStep step(scale);
      const Said said = said_of(hidden_gradient(recorded(step, watch)), "gradient");
      for (const std::string& words : {said.text.out, said.brief.out, said.markdown}) {
        EXPECT_EQ(words.find("in this step"), std::string::npos) << words;
        EXPECT_NE(words.find("could be looked at"), std::string::npos) << words;
        EXPECT_NE(words.find("aten::mul_"), std::string::npos) << words;
        EXPECT_NE(words.find("1 gradient"), std::string::npos) << words;
      }
      EXPECT_EQ(said.text.code, 1);
      EXPECT_EQ(said.brief.code, 1);
      EXPECT_NE(said.text.out.find("NOT SEEN"), std::string::npos) << said.text.out;
      EXPECT_EQ(said.json["found"], false);
      EXPECT_EQ(said.json["unseen"]["gradients"], 1);
      EXPECT_EQ(said.json["unseen"]["loss"], false);
      EXPECT_GE(said.json["unseen"]["ops"].get<int>(), 1);
      EXPECT_NE(said.json["not_tested"].dump().find("could not be looked at"), std::string::npos);
    }
}

TEST(Unseen, OpsThatCannotBeRunAgainAreNoGapIfWhatTheyMadeIsOnRecord) {
  for (const bool watch : {true, false}) {
    GraphStep step;
    const Recording recording = recorded(step, watch);
    ASSERT_TRUE(std::any_of(recording.doc.ops.begin(), recording.doc.ops.end(),
                            [](const OpRow& op) { return op.flags & kOpOpaque; }));
    const Said said = said_of(recording, "graph");
    EXPECT_EQ(said.text.code, 0) << said.text.out;
    EXPECT_NE(said.text.out.find("no harmful NaN or Inf in this step"), std::string::npos) << said.text.out;
    EXPECT_FALSE(said.json.contains("unseen")) << said.text.out;
  }
}

TEST(Unseen, TheLossInMemoryThatNobodyReads) {
  const at::Tensor w = leaf(at::ones({2}));
  StepState state;
  state.parameters = {{"w", w}};
  const Verdict v = Incident(state, [&] {
                      return at::_nested_tensor_from_tensor_list({w.mul(2).detach()}).mul(kInf);
                    }).verdict();
  EXPECT_FALSE(v.found);
  EXPECT_TRUE(v.unseen.loss);
  EXPECT_GE(v.unseen.ops, 2);
}

TEST(Unseen, WhatAReplayCouldNotRunHasNoValues) {
  const at::Tensor w = leaf(at::ones({3}));
  StepState state;
  state.parameters = {{"w", w}};
  const auto step = [&] {
    const at::Tensor loss = w.exp().square().sum();
    loss.backward();
    return loss;
  };
  Recording recording = record_step(state, step, {.watch = false, .stacks = false});
  recording.doc.basis = "survivors";
  for (OpRow& op : recording.doc.ops)
    if (op.name == "aten::exp") op.name = "nanquest_not_loaded::exp";
  const Said said = said_of(recording, "failed");
  EXPECT_EQ(said.text.code, 1);
  EXPECT_NE(said.text.out.find("nanquest_not_loaded::exp"), std::string::npos) << said.text.out;
}

TEST(Unseen, AHealthyStepOfManyKindsHasNoGaps) {
  const at::Tensor w = leaf(at::rand({4, 4})), b = leaf(at::zeros({4}));
  at::Tensor mean = at::zeros({4}), variance = at::ones({4});
  StepState state;
  state.parameters = {{"w", w}, {"b", b}};
  state.buffers = {{"mean", mean}, {"variance", variance}};
  const auto step = [&] {
    at::Tensor h = at::addmm(b, at::rand({8, 4}), w).to(at::kBFloat16).to(at::kFloat);
    h = at::batch_norm(h, {}, {}, mean, variance, true, 0.1, 1e-5, false);
    h = at::layer_norm(at::dropout(h.relu(), 0.5, true), {4});
    const at::Tensor loss = at::cross_entropy_loss(h, at::randint(4, {8}, at::kLong)) + h.amax({1}).sum();
    loss.backward();
    return loss;
  };
  for (const bool watch : {true, false}) {
    Recording recording = record_step(state, step, {.watch = watch, .stacks = false});
    if (!watch) recording.doc.basis = "survivors";
    const Said said = said_of(recording, "healthy");
    EXPECT_EQ(said.text.code, 0) << said.text.out;
    EXPECT_FALSE(said.json.contains("unseen")) << said.text.out;
  }
}

}  // namespace
}  // namespace nanquest
