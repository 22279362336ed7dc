// Runs that go on from a checkpoint are the runs that begin at the start, bit for bit.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

void expect_same(const SnapshotDoc& doc, const RunResult& a, const RunResult& b, const std::string& what) {
  EXPECT_EQ(a.failed, b.failed) << what;
  EXPECT_EQ(a.births, b.births) << what;
  EXPECT_EQ(a.first_nan, b.first_nan) << what;
  EXPECT_EQ(a.loss_finite, b.loss_finite) << what;
  EXPECT_EQ(a.gradients_finite, b.gradients_finite) << what;
  if (a.loss_finite) {
    EXPECT_EQ(a.loss, b.loss) << what;
  }
  ASSERT_EQ(a.ops.size(), b.ops.size());
  for (std::size_t op = 0; op < a.ops.size(); ++op) {
    if (doc.ops[op].flags & kOpUninitialised) continue;  // uninitialised memory is different each time
    ASSERT_EQ(a.ops[op].written.size(), b.ops[op].written.size()) << what << ", op " << op;
    for (std::size_t i = 0; i < a.ops[op].written.size(); ++i) {
      const StatsRow &x = a.ops[op].written[i], &y = b.ops[op].written[i];
      EXPECT_EQ(x.amax, y.amax) << what << ", op " << op;
      EXPECT_EQ(x.non_finite(), y.non_finite()) << what << ", op " << op;
      // What lies before a checkpoint was run without a hash.
      if (x.has_hash && y.has_hash) {
        EXPECT_EQ(x.hash, y.hash) << what << ", op " << op;
      }
    }
  }
}

/// The op in fp64, and all that it wrote doubled: an edit that works before the op, and one after it.
RunOptions changed_at(std::int32_t op) {
  RunOptions options;
  options.hash = true;
  options.edit.op_precision[op] = Precision::fp64;
  options.edit.output_edit[op] = [](std::vector<at::Tensor>& written) {
    for (at::Tensor& t : written)
      if (t.defined() && t.is_floating_point()) t.mul_(2);
  };
  return options;
}

TEST(Checkpoint, EveryRunFromEveryCheckpointIsTheWholeRun) {
  for (const Program& program : programs()) {
    const std::string& name = program.name;
    const Replayer replayer = replayer_of(record(program.make(0, at::kFloat)));
    const TraceGraph graph(replayer.doc());
    const auto ops = static_cast<std::int32_t>(replayer.doc().ops.size());
    const std::int32_t stride = std::max(1, ops / 12);
    for (std::int32_t at = 0; at < ops; at += stride) {
      const Checkpoint first = replayer.checkpoint(at);
      EXPECT_EQ(first.op(), at);
      const std::int32_t later = std::min(ops - 1, at + stride);
      const RunOptions here = changed_at(at), there = changed_at(later);
      ASSERT_EQ(here.edit.first_op(graph).row(), at);
      const std::string what = name + " at op " + std::to_string(at);
      const RunResult whole = replayer.run(here);
      expect_same(replayer.doc(), whole, replayer.run(here, first), what);
      expect_same(replayer.doc(), replayer.run(there),
                  replayer.run(there, replayer.checkpoint(later, &first)), what + ", on");
      expect_same(replayer.doc(), whole, replayer.run(here, first),
                  what + ", again: a run must leave the checkpoint alone");
    }
  }
}

TEST(Checkpoint, AnInPlaceEditOfAnArgumentStaysInItsRun) {
  const at::Tensor x = at::full({4}, 0.0);
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [=] { return at::log(x + 0).sum(); };
  const Replayer replayer = replayer_of(record(step));
  RunOptions guard;
  guard.edit.op_edit[0] = [](std::vector<c10::IValue>& stack) {
    stack[0].toTensor().fill_(1);
    return false;
  };
  EXPECT_TRUE(replayer.run(guard).loss_finite);
  EXPECT_FALSE(replayer.run({}).loss_finite) << "the edit of one run wrote into the stored batch";
}

TEST(Checkpoint, ARunEndsWhenTheLossIsDecided) {
  const at::Tensor x = at::full({4}, -1.0).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"x", x}};
  step.run = [=] {
    const at::Tensor loss = at::log(x).sum();
    loss.backward();
    return loss;
  };
  const Replayer replayer = replayer_of(record(step));
  RunOptions options;
  options.stop_when_harmed = true;
  const RunResult run = replayer.run(options);
  EXPECT_EQ(replayer.doc().ops[static_cast<std::size_t>(run.decided_at)].name, "aten::sum");
  EXPECT_FALSE(run.loss_finite);
  EXPECT_FALSE(run.ops.back().ran);
  EXPECT_EQ(replayer.run({}).decided_at, kNone);
}

TEST(Checkpoint, WhatIsToBeKeptIsGiven) {
  const at::Tensor x = at::full({4}, 3.0).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"x", x}};
  step.run = [=] {
    const at::Tensor loss = (x * x).sum();
    loss.backward();
    return loss;
  };
  const Replayer replayer = replayer_of(record(step));
  RunOptions options;
  options.keep = replayer.doc().gradients;
  const RunResult run = replayer.run(options);
  ASSERT_EQ(run.kept.size(), 1u);
  EXPECT_TRUE(at::equal(run.kept[0], at::full({4}, 6.0)));
}

}  // namespace
}  // namespace nanquest::testing
