#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "probe/observe/step_scope.h"
#include "tests/record/side_by_side.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

class RecorderProgram : public ::testing::TestWithParam<Program> {};

TEST_P(RecorderProgram, WatchingChangesNoRow) {
  const Step step = GetParam().make(3, at::kFloat);
  Both both;
  at::Tensor loss;
  {
    auto session = ObserverSession::start(both);
    ASSERT_TRUE(session.ok());
    loss = step.run();
  }
  ASSERT_EQ(both.blind.error(), "");
  ASSERT_EQ(both.blind.steps(), std::vector<std::int64_t>{0});
  const StepTables blind = tables_of(both.blind, 0, step.state, loss);
  const StepTables watched = tables_of(both.watching, 0, step.state, loss);
  EXPECT_GT(blind.recording.doc.ops.size(), 3u);
  EXPECT_TRUE(blind.recording.notes.empty()) << blind.recording.notes.front();
  expect_same_tables(blind.recording.doc, watched.recording.doc);
  expect_same_data(blind.recording, watched.recording);
}

TEST_P(RecorderProgram, ComesBackBitForBitFromWhatSurvived) {
  const Step step = GetParam().make(3, at::kFloat);
  Recorder trace({.stacks = false});
  auto session = ObserverSession::start(trace);
  ASSERT_TRUE(session.ok());
  for (int number = 0; number < 4; ++number) {
    for (const auto& [name, p] : step.state.parameters) p.mutable_grad().reset();
    trace.begin_step(number);
    const at::Tensor loss = step.run();
    const ObserverPause pause;
    StepTables tables = tables_of(trace, number, step.state, loss);
    tables.finish(names_of(step.state));
    const VerifyResult result = verify(replayer_of(tables.recording));
    EXPECT_EQ(result.basis, "survivors");
    EXPECT_TRUE(result.bit_exact) << result.mismatched << " of " << result.outputs_compared << " differ";
    EXPECT_GT(result.outputs_compared, 1);
    trace.end_step(false);
  }
  EXPECT_EQ(trace.error(), "");
}

INSTANTIATE_TEST_SUITE_P(Recorder, RecorderProgram, ::testing::ValuesIn(programs()),
                         [](const auto& each) { return each.param.name; });

TEST(Recorder, WhatAnOpInPlaceOverwritesIsCopiedBeforeIt) {
  // Without the copies the derivatives would read memory that no recorded op has made: it would keep its
  // value whatever else a replay changes.
  const Recording recording = record(program("gates").make(3, at::kFloat));
  const TraceGraph graph(recording.doc);
  int copies = 0;
  for (const OpId op : graph.ops()) {
    if (graph.op(op).phase == Phase::backward) {
      for (const TensorId row : graph.reads(op))
        EXPECT_TRUE(graph.producer(row, op) || !get(recording.doc, graph.slot(row)).name.empty())
            << "op " << op.row() << " (" << graph.op(op).name << ") reads memory that nobody made";
    }
    const std::string& next = op.row() + 1 < static_cast<std::int32_t>(recording.doc.ops.size())
                                  ? recording.doc.ops[static_cast<std::size_t>(op.row()) + 1].name
                                  : "";
    if (graph.op(op).name == "aten::clone") copies += next == "aten::mul_" || next == "aten::div_";
  }
  EXPECT_GT(copies, 3);
}

/// Records one step; the tables are made while it is current.
template <class F>
StepTables recorded(Recorder& trace, F&& step, const StepState& state = {}) {
  trace.begin_step(0);
  at::Tensor loss;
  {
    auto session = ObserverSession::start(trace);
    EXPECT_TRUE(session.ok());
    loss = step();
  }
  return tables_of(trace, 0, state, loss);
}

TEST(RecorderOutside, SmallStoragesAreCopiedWhenReadAndLargeOnesWhenOverwritten) {
  for (const std::int64_t n : {16, 1 << 16}) {
    const at::Tensor counter = at::ones({n});
    Recorder trace({});
    const StepTables tables = recorded(trace, [&] {
      (void)counter.mul(2);
      return counter.add_(1).sum();
    });
    EXPECT_TRUE(at::equal(tables.recording.data.front().second, at::ones({n})));
    EXPECT_TRUE(tables.recording.notes.empty());
  }
}

TEST(RecorderOutside, AWriteThatNobodySawIsTold) {
  const at::Tensor small = at::ones({16}), large = at::ones({1 << 16});
  Recorder trace({});
  StepTables tables = recorded(trace, [&] {
    const at::Tensor first = small.sum();
    const at::Tensor sum = first + large.sum();
    small.mutable_data_ptr<float>()[3] = 7;  // as NumPy would
    std::fill_n(large.mutable_data_ptr<float>(), large.numel(), 7.f);
    return sum;
  });
  ASSERT_EQ(tables.recording.notes.size(), 1u);
  EXPECT_NE(tables.recording.notes.front().find("behind the trace"), std::string::npos);
  EXPECT_TRUE(at::equal(tables.recording.data.front().second, at::ones({16})));
}

TEST(RecorderOutside, AWriteOfAnotherThreadIsToldByTheVersion) {
  const at::Tensor large = at::ones({1 << 16});
  Recorder trace({});
  const StepTables tables = recorded(trace, [&] {
    const at::Tensor sum = large.sum();
    std::thread([&] { large.select(0, 12345).fill_(2); }).join();
    return sum;
  });
  ASSERT_EQ(tables.recording.notes.size(), 1u);
  EXPECT_NE(tables.recording.notes.front().find("behind the trace"), std::string::npos);
  for (const OpRow& op : tables.recording.doc.ops) EXPECT_NE(op.name, "aten::fill_");
}

TEST(RecorderOutside, FreedMemoryIsTold) {
  const at::Tensor large = at::ones({1 << 16});
  Recorder trace({});
  const StepTables tables = recorded(trace, [&] {
    const at::Tensor sum = large.sum();
    large.storage().set_nbytes(0);
    large.storage().set_data_ptr(c10::DataPtr());
    return sum;
  });
  ASSERT_EQ(tables.recording.notes.size(), 1u);
  EXPECT_NE(tables.recording.notes.front().find("freed"), std::string::npos);
}

/// Stacks of x · factor and its sum, in three steps, the last of them with another factor.
std::vector<std::vector<std::shared_ptr<Stack>>> stacks_of_three_steps(Phase phase) {
  const at::Tensor x = at::randn({8, 8});
  Recorder trace({});
  auto session = ObserverSession::start(trace);
  double factor = 2;
  const auto step = [&] { return x.mul(factor).sum(); };
  std::vector<std::vector<std::shared_ptr<Stack>>> stacks;
  for (int number = 0; number < 3; ++number) {
    if (number == 2) factor = 3;
    trace.begin_step(number);
    {
      const PhaseScope in(phase);
      (void)step();
    }
    StepTables tables(trace, *trace.current());
    tables.build({});
    stacks.push_back(tables.stacks());
    trace.end_step(false);
  }
  return stacks;
}

TEST(Recorder, StacksAreSharedWhileTheStepRepeats) {
  const auto stacks = stacks_of_three_steps(Phase::forward);
  ASSERT_EQ(stacks[0].size(), 2u);
  EXPECT_EQ(stacks[0], stacks[1]);
  EXPECT_NE(stacks[1][0], stacks[2][0]);  // another factor: maybe another line
  EXPECT_EQ(stacks[1][1], stacks[2][1]);
}

TEST(Recorder, NumbersOfAnOptimizerChangeWithoutNewStacks) {
  const auto stacks = stacks_of_three_steps(Phase::optimizer);
  ASSERT_EQ(stacks[0].size(), 2u);
  EXPECT_EQ(stacks[0], stacks[1]);
  EXPECT_EQ(stacks[1], stacks[2]);
}

TEST(Recorder, AnErrorSwitchesRecordingOff) {
  Recorder trace({});
  trace.begin_step(0);
  trace.on_error("mine");
  EXPECT_FALSE(trace.recording());
  EXPECT_EQ(trace.find(0), nullptr);
  trace.begin_step(1);
  EXPECT_FALSE(trace.recording());
  EXPECT_EQ(trace.error(), "mine");
}

}  // namespace
}  // namespace nanquest::testing
