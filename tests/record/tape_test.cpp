// The tape: many steps in one record, run again from the anchor's values only.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "probe/record/governor.h"
#include "probe/record/recorder.h"
#include "probe/record/tables.h"
#include "probe/record/tape_values.h"
#include "probe/snapshot/reader.h"
#include "probe/tensor/tensor_scan.h"
#include "replay/trace/replayer.h"
#include "tests/record/programs.h"

namespace nanquest::testing {
namespace {

constexpr int kSteps = 5;

/// Trains with momentum and dropout, a new batch in every step; no value of an update is kept.
struct Training {
  TinyNet net{1};
  at::Tensor moment = at::zeros({16, 8});

  void step(Recorder& recorder, int number) {
    recorder.begin_step(number);
    const at::Tensor loss = net.step();
    recorder.passed_gate({.step = number, .rate = 0.1}, loss);
    recorder.begin_update(/*keep_values=*/false);
    {
      const at::NoGradGuard no_grad;
      moment.mul_(0.9).add_(net.w1.grad());
      net.w1.add_(moment, -0.1);
    }
    recorder.updated();
    recorder.end_step(false);
    const at::NoGradGuard no_grad;
    net.x = net.x.roll(1, 0);  // between two steps: the next one reads this
    net.w2.add_(net.w2.grad(), -0.1);
    net.clear();
  }
};

Replayer replay(Recorder& recorder, record::Step& whole) {
  StepTables tables(recorder, whole);
  tables.build({});
  tables.finish({});
  std::map<std::string, at::Tensor> data;
  for (const auto& [path, tensor] : tables.recording.data) data[path] = tensor.clone();
  Result<Replayer> made = Replayer::from_memory(tables.recording.doc, std::move(data));
  return std::move(made).value();
}

TEST(Tape, ManyStepsComeBackBitForBitFromTheAnchor) {
  Training training;
  Recorder recorder({.keep_steps = 0, .stacks = false, .tape = {.steps = 64}});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  const at::Tensor before = training.net.w1.detach().clone();
  for (int i = 0; i < kSteps; ++i) training.step(recorder, i);
  const ObserverPause pause;
  EXPECT_EQ(recorder.tape()->steps(), kSteps);
  const auto whole = recorder.taped();
  ASSERT_TRUE(whole);
  ASSERT_EQ(whole->marks.size(), 2u * kSteps);
  // The weight is one storage in all steps, and its stored value is that of the anchor.
  const std::uint32_t slot = whole->slots.find(training.net.w1.storage().unsafeGetStorageImpl());
  ASSERT_NE(slot, record::SlotIndex::kMissing);
  ASSERT_TRUE(whole->slots[slot].saved);
  EXPECT_EQ(std::memcmp(whole->slots[slot].saved, before.const_data_ptr(), before.nbytes()), 0);
  const Replayer replayer = replay(recorder, *whole);
  const VerifyResult same = verify(replayer);
  EXPECT_TRUE(same.bit_exact) << same.mismatched << " of " << same.outputs_compared << " differ, first at op "
                              << same.first_mismatch << ", failed " << same.failed_ops;
  EXPECT_GT(same.outputs_compared, 3);
}

TEST(Tape, OnlyWhatItDidNotLeaveThereIsStored) {
  Training training;
  Recorder recorder({.keep_steps = 0, .stacks = false, .tape = {.steps = 64}});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  training.step(recorder, 0);
  const auto stored = [&] {
    const ObserverPause pause;
    const auto whole = recorder.taped();
    int count = 0;
    for (std::uint32_t i = 0; i < whole->slots.size(); ++i) count += !whole->slots[i].produced;
    return count;
  };
  const int first = stored();
  for (int i = 1; i < kSteps; ++i) training.step(recorder, i);
  EXPECT_EQ(stored(), first);  // the previous step makes the batch of each step
}

TEST(Tape, WhatTheHostFillsBetweenTwoStepsIsStored) {
  Training training;
  Recorder recorder({.keep_steps = 0, .stacks = false, .tape = {.steps = 64}});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  for (int i = 0; i < kSteps; ++i) {
    // A batch that an op pads and the host then fills.
    at::Tensor batch = at::full(training.net.x.sizes(), -1.0, at::kFloat);
    auto* to = batch.mutable_data_ptr<float>();
    for (std::int64_t n = 0; n + 2 < batch.numel(); ++n) to[n] = static_cast<float>((7 * n + i) % 11) / 11;
    training.net.x = batch;
    training.step(recorder, i);
  }
  const ObserverPause pause;
  const auto whole = recorder.taped();
  ASSERT_TRUE(whole);
  const Replayer replayer = replay(recorder, *whole);
  const VerifyResult same = verify(replayer);
  EXPECT_TRUE(same.bit_exact) << same.mismatched << " of " << same.outputs_compared << " differ, first at op "
                              << same.first_mismatch << ", failed " << same.failed_ops;
}

TEST(Tape, AFileHoldsItsStepsAndTheyComeBackFromThere) {
  Training training;
  Recorder recorder({.keep_steps = 0, .stacks = false, .tape = {.steps = 64}});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  for (int i = 0; i < kSteps; ++i) training.step(recorder, 7 + i);
  const ObserverPause pause;
  const auto whole = recorder.taped();
  StepTables tables(recorder, *whole);
  tables.build({});
  tables.finish({});
  Recording recording;
  recording.tape = tables.tape();
  const std::string path = ::testing::TempDir() + "nanquest-tape-test.h5";
  const Status written = write_snapshot(recording, path);
  ASSERT_TRUE(written) << written.error().text();
  const Result<SnapshotReader> file = SnapshotReader::open(path);
  ASSERT_TRUE(file) << file.error().text();
  Result<TapeDoc> tape = file->read_tape();
  ASSERT_TRUE(tape) << tape.error().text();
  ASSERT_EQ(tape->steps.size(), static_cast<std::size_t>(kSteps));
  std::int32_t before = 0;
  for (int i = 0; i < kSteps; ++i) {
    const TapeStep& step = tape->steps[static_cast<std::size_t>(i)];
    EXPECT_EQ(step.step, 7 + i);
    EXPECT_EQ(step.rate, 0.1);
    EXPECT_GT(step.gate, before);
    EXPECT_EQ(step.end, step.gate + 3);  // mul_, add_, add_
    ASSERT_NE(step.loss, kNone);
    EXPECT_LT(step.loss_op, step.gate);
    EXPECT_GE(step.loss_op, before);
    EXPECT_TRUE(tape->trace.tensors[static_cast<std::size_t>(step.loss)].sizes.empty());
    before = step.end;
  }
  std::map<std::string, at::Tensor> data;
  const std::vector<TensorInfo> tensors = file->tensors().value();
  for (const TensorInfo& tensor : tensors) {
    EXPECT_TRUE(tensor.path.starts_with(kTapePrefix)) << tensor.path;
    data[tensor.path] = read_as_tensor(*file, tensor.path).value();
  }
  const Result<Replayer> replayer = Replayer::from_memory(std::move(tape->trace), std::move(data));
  ASSERT_TRUE(replayer) << replayer.error().text();
  EXPECT_TRUE(verify(*replayer).bit_exact);
  std::remove(path.c_str());
}

TEST(Tape, AnAnchorTakesTurnsWithTheNext) {
  Training training;
  Recorder recorder({.keep_steps = 0, .stacks = false, .tape = {.steps = 3}});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  for (int i = 0; i < 11; ++i) {
    training.step(recorder, i);
    EXPECT_LE(recorder.tape()->steps(), 6);
    EXPECT_GE(recorder.tape()->steps(), std::min(i + 1, 3));
  }
  const ObserverPause pause;
  const auto whole = recorder.taped();
  EXPECT_TRUE(verify(replay(recorder, *whole)).bit_exact);
}

TEST(Tape, AGapCutsItAndTheNextStepBeginsAnother) {
  Training training;
  Recorder recorder({.keep_steps = 0, .stacks = false, .tape = {.steps = 64}});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  for (int i = 0; i < 4; ++i) training.step(recorder, i);
  recorder.cut_tape("a step was undone");
  EXPECT_EQ(recorder.tape()->steps(), 0);
  EXPECT_EQ(recorder.tape()->why_cut(), "a step was undone");
  EXPECT_FALSE(recorder.taped());
  for (int i = 4; i < 6; ++i) training.step(recorder, i);
  EXPECT_EQ(recorder.tape()->steps(), 2);
  EXPECT_TRUE(recorder.idle() == false);
  const ObserverPause pause;
  EXPECT_TRUE(verify(replay(recorder, *recorder.taped())).bit_exact);
}

/// Number of this process's mappings of files in `folder`, and how many of these files still have a name.
std::pair<int, int> files_in(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  int all = 0, named = 0;
  for (std::string line; std::getline(maps, line);) {
    all += line.find(folder + "/") != std::string::npos;
    named += line.find(folder + "/") != std::string::npos && !line.ends_with("(deleted)");
  }
  return {all, named};
}

TEST(Tape, LargeValuesAreFilesOfAFolder) {
  const std::string folder =
      std::filesystem::canonical(::testing::TempDir()).string() + "/nanquest-tape-folder";
  std::filesystem::create_directory(folder);
  {
    at::Tensor weight = at::randn({1024, 1024}), small = at::randn({1024});
    const at::Tensor before = weight.clone();
    Recorder recorder({.keep_steps = 0, .stacks = false, .tape = {.steps = 64, .room = {.folder = folder}}});
    auto session = ObserverSession::start(recorder);
    ASSERT_TRUE(session.ok());
    for (int i = 0; i < 3; ++i) {
      recorder.begin_step(i);
      const at::NoGradGuard no_grad;
      weight.mul_(0.9).add_(small);
      recorder.end_step(false);
    }
    const ObserverPause pause;
    EXPECT_EQ(files_in(folder), (std::pair{1, 0}));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    EXPECT_GE(recorder.tape()->memory(), before.nbytes());
    const auto whole = recorder.taped();
    ASSERT_TRUE(whole);
    const std::uint32_t slot = whole->slots.find(weight.storage().unsafeGetStorageImpl());
    ASSERT_TRUE(whole->slots[slot].saved);
    EXPECT_EQ(std::memcmp(whole->slots[slot].saved, before.const_data_ptr(), before.nbytes()), 0);
    EXPECT_TRUE(verify(replay(recorder, *whole)).bit_exact);
  }
  EXPECT_EQ(files_in(folder).first, 0);
  std::filesystem::remove(folder);
}

TEST(Tape, AFolderThatIsGoneIsSaidAndEndsIt) {
  Recorder recorder(
      {.keep_steps = 0, .stacks = false, .tape = {.steps = 64, .room = {.folder = "/nowhere/tape"}}});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  at::Tensor weight = at::randn({1024, 1024});
  recorder.begin_step(0);
  weight.mul_(0.9);
  recorder.end_step(false);
  EXPECT_TRUE(recorder.tape()->gave_up());
  EXPECT_NE(recorder.tape()->complaint().find("/nowhere/tape"), std::string::npos)
      << recorder.tape()->why_cut();
}

TEST(TapeValues, TakeTheirShareAndNoMore) {
  const auto free = static_cast<double>(free_memory());
  record::TapeValues values({.share = (1 << 20) / free});
  const at::Tensor half = at::randn({1 << 17}), little = at::randn({16});
  auto first = values.copy(half.storage(), half.nbytes());
  ASSERT_TRUE(first);
  EXPECT_EQ(std::memcmp(first->bytes.const_data_ptr(), half.const_data_ptr(), half.nbytes()), 0);
  EXPECT_EQ(values.held(), half.nbytes());
  EXPECT_FALSE(values.fit_again({&*first, &*first}));
  EXPECT_TRUE(values.copy(little.storage(), little.nbytes()));
  EXPECT_FALSE(values.copy(half.storage(), half.nbytes()));
  EXPECT_NE(values.why().find("its share of the memory that was free"), std::string::npos) << values.why();
  EXPECT_FALSE(values.add_rows(1 << 20));
  values.recount(0, {&*first, &*first});  // referenced by both anchors, stored once
  EXPECT_EQ(values.held(), half.nbytes());
}

TEST(Tape, ThereIsNoneWithoutBeingAskedFor) {
  Training training;
  Recorder recorder({.keep_steps = 0, .stacks = false});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  training.step(recorder, 0);
  EXPECT_EQ(recorder.tape(), nullptr);
  EXPECT_FALSE(recorder.taped());
  EXPECT_TRUE(recorder.idle());
}

}  // namespace
}  // namespace nanquest::testing
