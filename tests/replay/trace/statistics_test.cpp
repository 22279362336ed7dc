// A standing trace, recorded without looking at a value, tells the same story as a watched one once replay
// has run it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "probe/observe/module_scope.h"
#include "probe/record/header.h"
#include "probe/record/tables.h"
#include "probe/trace/births.h"
#include "probe/trace/culprit.h"
#include "replay/trace/statistics.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

/// The step as it is recorded when it is not watched.
Recording record_blind(const Step& step) {
  Recording recording = record_step(step.state, step.run, {.watch = false, .stacks = false});
  EXPECT_TRUE(recording.notes.empty()) << recording.notes.front();
  return recording;
}

/// fp16 values leave their range, and 1/sqrt(infinity) is a finite 0 where a number belongs.
Step overflow_in_half() {
  const at::Tensor w = at::full({4}, 300.0).to(at::kHalf).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"w", w}};
  step.run = [=] {
    const at::Tensor loss = w.detach().mul(w.detach()).rsqrt().to(at::kFloat).sum() + w.to(at::kFloat).sum();
    loss.backward();
    return loss;
  };
  return step;
}

TEST(StandingHidden, BirthsOfADeviceAreJudgedWhenItsFileIsOpened) {
  constexpr std::uint32_t kJudged = kOpBirthFiniteAbove | kOpBirthStays | kOpHidesDamage | kOpHidesNothing;
  const Step step = overflow_in_half();
  Recording recording = record_step(step.state, step.run, {.stacks = false});
  const SnapshotDoc told = recording.doc;
  ASSERT_EQ(told.culprit.value, "silent");
  // What the recorder leaves open on a device.
  for (OpRow& op : recording.doc.ops) op.flags &= ~kJudged;
  recording.doc.culprit = {};
  EXPECT_TRUE(
      replayer_of(recording).doc().culprit.value.empty());  // recorded on a CPU: nothing was left open
  for (Slot& slot : recording.doc.slots) slot.device = "cuda:0";
  const Replayer replayer = replayer_of(recording);
  int judged = 0;
  for (std::size_t i = 0; i < told.ops.size(); ++i) {
    EXPECT_EQ(replayer.doc().ops[i].flags & kJudged, told.ops[i].flags & kJudged) << told.ops[i].name;
    judged += (told.ops[i].flags & kOpHidesDamage) != 0;
  }
  EXPECT_EQ(judged, 1);
  EXPECT_EQ(replayer.doc().culprit.op, told.culprit.op);
  EXPECT_EQ(replayer.doc().culprit.value, "silent");
}

struct Failure {
  std::string name;
  std::function<Step()> make;
  std::string op;  ///< expected culprit, by hand
  std::string origin;
  std::uint32_t birth;  ///< flags of the culprit op
};

Step overflow(at::ScalarType type, double scale) {
  const at::Tensor w = at::full({4, 4}, scale).to(type).set_requires_grad(true);
  const at::Tensor x = at::full({3, 4}, scale).to(type);
  Step step;
  step.state.parameters = {{"w", w}};
  step.state.batch = {{"x", x}};
  step.run = [=] {
    at::Tensor h = x * 0.5;
    {
      const ModuleScope scope("hot", "Linear");
      h = at::mm(h, w);
    }
    auto loss = h.to(at::kFloat).square().mean();
    loss.backward();
    return loss;
  };
  return step;
}

Step logarithm_of_zero() {
  const at::Tensor w = at::zeros({5}).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"w", w}};
  step.run = [=] {
    auto garbage = at::empty({64});  // its bytes are uninitialised
    garbage.zero_();
    auto loss = (w.exp() - 1).log().sum() + garbage.sum();
    loss.backward();
    return loss;
  };
  return step;
}

Step bad_weight() {
  const at::Tensor w = at::ones({4}).set_requires_grad(true), v = at::ones({4}).set_requires_grad(true);
  {
    const at::NoGradGuard no_grad;
    w[2].fill_(NAN);
  }
  Step step;
  step.state.parameters = {{"v", v}, {"w", w}};
  step.run = [=] {
    auto loss = (v * 2).sum() + (w * 3).sum();
    loss.backward();
    return loss;
  };
  return step;
}

Step masked_attention() {
  at::manual_seed(3);
  const at::Tensor s = at::randn({3, 3}).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"scores", s}};
  step.run = [=] {
    auto mask = at::ones({3, 3}, at::kBool).triu(1);
    mask[1].fill_(true);  // a row that may look at nothing
    auto loss = at::softmax(s.masked_fill(mask, -INFINITY), -1).square().sum();
    loss.backward();
    return loss;
  };
  return step;
}

Step bad_update() {
  const at::Tensor w = at::ones({4}).set_requires_grad(true);
  const at::Tensor square = at::zeros({4});
  Step step;
  step.state.parameters = {{"w", w}};
  step.state.optimizer = {{"exp_avg_sq", square}};
  step.run = [=] {
    auto loss = (w * 0).sum();
    loss.backward();
    const PhaseScope phase(Phase::optimizer);
    const at::NoGradGuard no_grad;
    w.addcdiv_(w.grad(), square.sqrt(), -0.1);  // 0 / 0 without epsilon
    return loss;
  };
  return step;
}

/// What was in the target is no input of the copy.
Step bad_copy() {
  const at::Tensor w = at::full({4}, 1e6).set_requires_grad(true);
  at::Tensor target = at::full({4}, NAN, at::kHalf);
  Step step;
  step.state.parameters = {{"w", w}};
  step.state.buffers = {{"target", target}};
  step.run = [=]() mutable {
    {
      const at::NoGradGuard no_grad;
      target.copy_(w);
    }
    auto loss = (target.to(at::kFloat) * w).sum();
    loss.backward();
    return loss;
  };
  return step;
}

const std::vector<Failure>& failures() {
  static const std::vector<Failure> all = {
      {"fp16_range", [] { return overflow(at::kHalf, 300); }, "aten::mm", "op",
       kOpBirth | kOpBirthFiniteAbove},
      {"fp32_range", [] { return overflow(at::kFloat, 1e20); }, "aten::mm", "op",
       kOpBirth | kOpBirthFiniteAbove},
      {"singular", logarithm_of_zero, "aten::log", "op", kOpBirth | kOpBirthStays},
      {"bad_weight", bad_weight, "aten::mul", "parameter", 0},
      {"masked_row", masked_attention, "aten::_softmax", "op", 0},
      {"update", bad_update, "aten::addcdiv_", "op", kOpBirth | kOpBirthStays},
      {"copy", bad_copy, "aten::copy_", "op", kOpBirth | kOpBirthFiniteAbove},
  };
  return all;
}

constexpr std::uint32_t kBirthFlags = kOpBirth | kOpBirthFiniteAbove | kOpBirthStays;

void expect_same_culprit(const SnapshotDoc& got, const SnapshotDoc& want) {
  EXPECT_EQ(got.culprit.op, want.culprit.op);
  EXPECT_EQ(got.culprit.phase, want.culprit.phase);
  EXPECT_EQ(got.culprit.origin, want.culprit.origin);
  EXPECT_EQ(got.culprit.value, want.culprit.value);
  EXPECT_EQ(got.culprit.count, want.culprit.count);
  EXPECT_EQ(got.culprit.first, want.culprit.first);
  EXPECT_EQ(got.culprit.tensor_name, want.culprit.tensor_name);
  EXPECT_EQ(got.culprit.lineage, want.culprit.lineage);
  EXPECT_EQ(got.culprit.suppressed, want.culprit.suppressed);
}

/// True for memory that was handed out unfilled and then seen as written by the host: it may hold anything.
bool is_garbage(const SnapshotDoc& doc, std::int32_t slot) {
  for (const OpRow& op : doc.ops)
    if ((op.flags & kOpHostWrite) && doc.tensors[static_cast<std::size_t>(op.first_output)].slot == slot)
      return true;
  return false;
}

/// The rows of memory that was allocated uninitialised: a recording keeps their hash, to see whether it was
/// written, and no two runs have the same.
std::set<std::int32_t> unfilled_rows(const SnapshotDoc& doc) {
  std::set<std::int32_t> found;
  for (const OpRow& op : doc.ops)
    for (std::int32_t i = 0; (op.flags & kOpUninitialised) && i < op.written_count; ++i)
      found.insert(doc.written[static_cast<std::size_t>(op.first_written + i)]);
  return found;
}

/// Every row that the recorder looked at has the same values here.
void expect_same_statistics(const SnapshotDoc& got, const SnapshotDoc& want, bool garbage = false) {
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  int compared = 0, hashed = 0;
  const std::set<std::int32_t> unfilled = unfilled_rows(want);
  for (std::size_t i = 0; i < want.tensors.size(); ++i) {
    if (want.tensors[i].stats == kNone || unfilled.contains(static_cast<std::int32_t>(i))) continue;
    if (garbage && is_garbage(want, want.tensors[i].slot)) continue;
    ASSERT_NE(got.tensors[i].stats, kNone) << "row " << i;
    const StatsRow& a = got.stats[static_cast<std::size_t>(got.tensors[i].stats)];
    const StatsRow& b = want.stats[static_cast<std::size_t>(want.tensors[i].stats)];
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.nan, b.nan);
    EXPECT_EQ(a.pos_inf, b.pos_inf);
    EXPECT_EQ(a.neg_inf, b.neg_inf);
    EXPECT_EQ(a.amax, b.amax);
    if (b.has_hash) {
      EXPECT_TRUE(a.has_hash) << "row " << i;
      EXPECT_EQ(a.hash, b.hash) << "row " << i;
      ++hashed;
    }
    ++compared;
  }
  EXPECT_GT(compared, 5);
  EXPECT_GE(hashed, static_cast<int>(want.written.size()) / 2);
  ASSERT_EQ(got.ops.size(), want.ops.size());
  for (std::size_t i = 0; i < want.ops.size(); ++i)
    EXPECT_EQ(got.ops[i].flags & kBirthFlags, want.ops[i].flags & kBirthFlags)
        << want.ops[i].name << " " << i;
}

/// An fp16 square that overflows inside `around`, and a healthy loss.
Step hidden_overflow(const std::function<at::Tensor(const at::Tensor&)>& around) {
  const at::Tensor w = at::full({4}, 300.0, at::kHalf).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"w", w}};
  step.run = [=] {
    const at::NoGradGuard no_grad;
    return around(w * w).to(at::kFloat).sum();
  };
  return step;
}

TEST(StandingHidden, WhatBecomesOfAnOverflowIsFollowedInARunAsInARecording) {
  constexpr std::uint32_t kHides = kOpHidesDamage | kOpHidesNothing;
  const std::pair<std::function<at::Tensor(const at::Tensor&)>, bool> cases[] = {
      {[](const at::Tensor& square) {
         return at::tanh(square.view({2, 2}).t());
       },
       false},
      {[](const at::Tensor& square) { return at::rsqrt(square + 1); }, true},
  };
  for (const auto& [around, harmful] : cases) {
    const Recording watched = record(hidden_overflow(around));
    const Replayer replayer = replayer_of(record_blind(hidden_overflow(around)));
    SnapshotDoc filled = fill_statistics(replayer);
    ASSERT_EQ(filled.ops.size(), watched.doc.ops.size());
    std::uint32_t seen = 0;
    for (std::size_t i = 0; i < filled.ops.size(); ++i) {
      EXPECT_EQ(filled.ops[i].flags & kHides, watched.doc.ops[i].flags & kHides) << filled.ops[i].name;
      seen |= filled.ops[i].flags & kHides;
    }
    EXPECT_EQ(seen, harmful ? kOpHidesDamage : kOpHidesNothing);
    EXPECT_EQ(find_culprit(filled), harmful);
  }
}

TEST(StandingHidden, AnOverflowAfterManyMasksIsJudged) {
  const auto many_masks = [](const at::Tensor& square) {
    const at::Tensor zero = at::zeros({4});
    for (int i = 0; i < 100; ++i) {
      (void)at::masked_fill(zero, at::ones({4}, at::kBool), -std::numeric_limits<double>::infinity());
      (void)zero.log();
    }
    return at::rsqrt(square + 1);
  };
  SnapshotDoc filled = fill_statistics(replayer_of(record_blind(hidden_overflow(many_masks))));
  // The square was there before the masks; what matters is that it was not the 65th.
  std::uint32_t seen = 0;
  for (const OpRow& op : filled.ops) seen |= op.flags & kOpHidesDamage;
  EXPECT_EQ(seen, kOpHidesDamage);
  const auto masks_first = [&](const at::Tensor& square) { return at::rsqrt(square * 1 + 1); };
  Step step = hidden_overflow(masks_first);
  const auto run = step.run;
  step.run = [=] {
    (void)many_masks(at::zeros({4}, at::kHalf));
    return run();
  };
  filled = fill_statistics(replayer_of(record_blind(step)));
  EXPECT_TRUE(find_culprit(filled));
  EXPECT_EQ(filled.culprit.value, "silent");
}

/// Half of new memory is written, and `read` elements of its 8 are read. What nobody wrote is NaN.
Step half_written(std::int64_t read) {
  const at::Tensor w = at::ones({4}).set_requires_grad(true);
  Step step;
  step.state.parameters = {{"w", w}};
  step.run = [=] {
    at::Context& context = at::globalContext();
    context.setDeterministicAlgorithms(true, /*warn_only=*/true);  // fills new memory with NaN
    const at::Tensor memory = at::empty({8});
    context.setDeterministicAlgorithms(false, false);
    memory.narrow(0, 0, 4).copy_(w.detach());
    auto loss = memory.narrow(0, 0, read).sum() + w.sum();
    loss.backward();
    return loss;
  };
  return step;
}

TEST(StandingMemory, HarmOfWhatNobodyWroteComesBack) {
  const Replayer replayer = replayer_of(record_blind(half_written(8)));
  EXPECT_FALSE(replayer.run({}).finite());
  const VerifyResult proof = verify(replayer);
  EXPECT_EQ(proof.basis, "survivors");
  EXPECT_TRUE(proof.bit_exact) << proof.mismatched << " of " << proof.outputs_compared;
  const SnapshotDoc watched = record(half_written(8)).doc;
  ASSERT_NE(watched.culprit.op, kNone);
  EXPECT_EQ(replayer.doc().culprit.op, watched.culprit.op);
}

TEST(StandingMemory, AWatchedStepComesBackByTheHashOfItsMemory) {
  const Replayer replayer = replayer_of(record(half_written(8)));
  EXPECT_FALSE(replayer.run({}).finite());
  const VerifyResult proof = verify(replayer);
  EXPECT_EQ(proof.basis, "every_output");
  EXPECT_TRUE(proof.bit_exact) << proof.mismatched << " of " << proof.outputs_compared;
}

TEST(StandingMemory, NothingIsFilledInAStepThatWasWell) {
  EXPECT_TRUE(replayer_of(record_blind(half_written(4))).run({}).finite());
}

class Standing : public ::testing::TestWithParam<Failure> {};

TEST_P(Standing, HasTheCulpritOfTheWatchedStep) {
  const Failure& failure = GetParam();
  const Recording watched = record(failure.make());
  ASSERT_NE(watched.doc.culprit.op, kNone);
  const OpRow& culprit = watched.doc.ops[static_cast<std::size_t>(watched.doc.culprit.op)];
  EXPECT_EQ(culprit.name, failure.op);
  EXPECT_EQ(watched.doc.culprit.origin, failure.origin);
  EXPECT_EQ(culprit.flags & kBirthFlags, failure.birth);

  const Recording recording = record_blind(failure.make());
  EXPECT_TRUE(lacks_statistics(recording.doc));
  EXPECT_EQ(recording.doc.culprit.op, kNone);
  const Replayer replayer = replayer_of(recording);
  expect_same_culprit(replayer.doc(), watched.doc);
  SnapshotDoc filled = fill_statistics(replayer);
  expect_same_statistics(filled, watched.doc);
  EXPECT_TRUE(find_culprit(filled));
  expect_same_culprit(filled, watched.doc);
}

TEST_P(Standing, RecorderAndRunCallTheSameOpsBirths) {
  const Recording watched = record(GetParam().make());
  std::vector<std::int32_t> births;  // a run leaves out those that were given the infinity as a number
  for (const OpId op : ids_of<OpRow>(watched.doc))
    if ((get(watched.doc, op).flags & kOpBirth) && !bad_constants(watched.doc, op).any())
      births.push_back(op.row());
  EXPECT_EQ(replayer_of(watched).run({}).births, births);
}

TEST_P(Standing, IsProvenByWhatSurvived) {
  const Recording recording = record_blind(GetParam().make());
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("nanquest_standing_" + GetParam().name + std::to_string(::getpid()) + ".h5"))
                               .string();
  const Status written = write_snapshot(recording, path);
  ASSERT_TRUE(written.ok()) << written.error().text();
  {
    auto replayer = Replayer::open(path);
    ASSERT_TRUE(replayer.ok()) << replayer.error().text();
    EXPECT_EQ(replayer->doc().ops[static_cast<std::size_t>(replayer->doc().culprit.op)].name, GetParam().op);
    const VerifyResult result = verify(*replayer);
    EXPECT_EQ(result.basis, "survivors");
    EXPECT_TRUE(result.bit_exact);
    // The loss, the gradients, and what else the step wrote last and is still alive.
    EXPECT_GE(result.outputs_compared, 1 + static_cast<std::int64_t>(recording.doc.gradients.size()));
  }
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Fill, Standing, ::testing::ValuesIn(failures()),
                         [](const auto& each) { return each.param.name; });

TEST(Fill, AChangedWeightShowsInWhatSurvived) {
  const Recording recording = record_blind(program("mlp").make(1, at::kFloat));
  EXPECT_TRUE(verify(replayer_of(recording)).bit_exact);
  std::map<std::string, at::Tensor> data(recording.data.begin(), recording.data.end());
  at::Tensor changed = data.at("parameters/up.weight").clone();
  changed.view(at::kInt).view({-1})[3].bitwise_xor_(1 << 20);
  data["parameters/up.weight"] = changed;
  const VerifyResult result = verify(std::move(Replayer::from_memory(recording.doc, data)).value());
  EXPECT_FALSE(result.bit_exact);
  EXPECT_EQ(result.basis, "survivors");
  EXPECT_EQ(result.outputs_compared, 8);  // the loss and three gradients, and the ops that wrote them last
  EXPECT_EQ(result.mismatched, 8);
  EXPECT_NE(result.first_mismatch, kNone);
}

TEST(Fill, EveryProgramRecordedBlindGetsTheStatisticsOfTheWatchedOne) {
  for (const Program& each : programs()) {
    SCOPED_TRACE(each.name);
    const Recording watched = record(each.make(2, at::kFloat));
    const Step step = each.make(2, at::kFloat);
    const Recording blind = record_blind(step);
    const Replayer replayer = replayer_of(blind);
    EXPECT_TRUE(verify(replayer).bit_exact);
    EXPECT_TRUE(verify(replayer).bit_exact);                           // the first run left nothing behind
    expect_same_statistics(replayer.doc(), watched.doc, each.random);  // rrelu's noise is one empty tensor
    EXPECT_EQ(replayer.doc().culprit.op, kNone);
  }
}

TEST(Fill, AWatchedStepKeepsItsTables) {
  const Recording recording = record(program("mlp").make(1, at::kFloat));
  EXPECT_FALSE(lacks_statistics(recording.doc));
  const SnapshotDoc filled = fill_statistics(replayer_of(recording));
  for (std::size_t i = 0; i < recording.doc.tensors.size(); ++i) {
    if (recording.doc.tensors[i].stats == kNone) continue;
    EXPECT_EQ(filled.tensors[i].stats, recording.doc.tensors[i].stats);
  }
}

}  // namespace
}  // namespace nanquest::testing
