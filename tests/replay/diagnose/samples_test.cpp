// Every program of samples/causes: run, replayed from its file, explained.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "probe/capture/record.h"
#include "probe/snapshot/reader.h"
#include "replay/cause/diagnose.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest {
namespace {

using testing::record_sample;
using testing::Scratch;

struct Expected {
  const char *sample, *cause, *phase, *op, *module, *origin, *precision;
  std::vector<std::int64_t> poison;
};

Verdict verdict_of(const std::string& snapshot) {
  auto replayer = Replayer::open(snapshot);
  EXPECT_TRUE(replayer.ok()) << replayer.error().text();
  return replayer ? diagnose(*replayer, snapshot) : Verdict{};
}

class Samples : public ::testing::TestWithParam<Expected> {};

TEST_P(Samples, IsExplainedAndTheFixIsVerified) {
  const Expected& e = GetParam();
  const Scratch scratch(std::string("sample_") + e.sample);
  const Verdict v = verdict_of(record_sample(e.sample, scratch, 1));
  EXPECT_TRUE(v.reproduction.bit_exact);
  EXPECT_EQ(v.reproduction.mismatched, 0);
  EXPECT_GT(v.reproduction.outputs_compared, 10);
  EXPECT_EQ(v.cause, e.cause) << v.explanation;
  EXPECT_EQ(v.phase, e.phase);
  EXPECT_EQ(v.culprit.op, e.op);
  EXPECT_EQ(v.culprit.module, e.module);
  EXPECT_EQ(v.origin, e.origin);
  EXPECT_EQ(v.precision.verdict, e.precision);
  EXPECT_EQ(v.poison, e.poison);
  EXPECT_GT(v.culprit.count, 0u);
  EXPECT_FALSE(v.evidence.empty());
  EXPECT_NEAR(v.confidence, 0.99, 1e-9);
  ASSERT_TRUE(v.fix.has_value());
  EXPECT_TRUE(v.fix->verified && v.fix->placebo_failed && v.fix->minimal);
  EXPECT_FALSE(v.fix->advice.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Causes, Samples,
    ::testing::Values(
        Expected{"fp16_overflow", "FP16_OVERFLOW", "forward", "aten::mm", "mlp", "op", "curable", {}},
        Expected{"all_masked_row",
                 "ALL_MASKED_ROW",
                 "forward",
                 "aten::_softmax",
                 "attention",
                 "op",
                 "structural",
                 {2}},
        Expected{"log_zero", "LOG_ZERO", "forward", "aten::log", "loss", "op", "curable", {4}},
        Expected{"div_zero", "DIV_ZERO", "forward", "aten::div", "masked_mean", "op", "structural", {1}},
        Expected{
            "singular_grad", "SINGULAR_GRAD", "backward", "aten::div", "distance", "op", "structural", {2}},
        Expected{"bad_data", "BAD_DATA", "input", "aten::mm", "fc1", "input", "not_a_precision_matter", {4}},
        Expected{
            "bad_state", "BAD_STATE", "input", "aten::add", "norm", "buffer", "not_a_precision_matter", {}}),
    [](const auto& one) { return std::string(one.param.sample); });

class Innocents : public ::testing::TestWithParam<const char*> {};

TEST_P(Innocents, AreNotAccused) {
  const Scratch scratch(GetParam());
  const Verdict v = verdict_of(record_sample(GetParam(), scratch, 0));
  EXPECT_FALSE(v.found) << v.cause << ": " << v.explanation;
  EXPECT_TRUE(v.reproduction.bit_exact);
}

INSTANTIATE_TEST_SUITE_P(Steps, Innocents, ::testing::Values("innocent_mask", "innocent_logspace"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Unwatched, TheReplayFileHasItsStatistics) {
  const Scratch scratch("unwatched");
  const at::Tensor x = at::tensor({1.0f, 0.0f});
  const at::Tensor w = at::ones({2}).set_requires_grad(true);
  StepState state;
  state.step = 7;
  state.batch = {{"x", x}};
  state.parameters = {{"w", w}};
  const auto step = [&] {
    const at::Tensor loss = (w * x).log().sum();
    loss.backward();
    return loss;
  };
  Recording recording =
      record_step(state, step, {.scan = false, .hash = false, .stacks = false, .lazy = true});
  recording.doc.basis = "survivors";
  ASSERT_EQ(recording.doc.culprit.op, kNone);
  ASSERT_TRUE(write_snapshot(recording, scratch / "blind.h5"));
  const std::string command =
      std::string(NANQUEST_REPLAY) + " -q --no-fixes '" + (scratch / "blind.h5") + "'";
  EXPECT_EQ(testing::run_program(command, scratch).code, 1);
  const auto reader = SnapshotReader::open(scratch / "blind.replay.h5");
  ASSERT_TRUE(reader.ok()) << reader.error().text();
  const SnapshotDoc& doc = reader->doc();
  ASSERT_EQ(doc.ops.size(), recording.doc.ops.size());
  ASSERT_NE(doc.culprit.op, kNone);
  const OpRow& log = doc.ops[static_cast<std::size_t>(doc.culprit.op)];
  EXPECT_EQ(log.name, "aten::log");
  const std::int32_t row = doc.written[static_cast<std::size_t>(log.first_written)];
  EXPECT_EQ(doc.stats[static_cast<std::size_t>(doc.tensors[static_cast<std::size_t>(row)].stats)].neg_inf,
            1u);
}

}  // namespace
}  // namespace nanquest
