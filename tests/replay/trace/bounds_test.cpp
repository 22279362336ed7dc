// A step that another device recorded: values are compared within bounds, and what can't run here is taken.
#include "replay/trace/bounds.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

StatsRow stats(std::uint64_t nan, std::uint64_t inf, double amax, double norm) {
  StatsRow row;
  row.count = 10;
  row.nan = nan;
  row.pos_inf = inf;
  row.amax = amax;
  row.sum_squares = norm * norm;
  return row;
}

TEST(Bounds, TheDistanceIsThatOfNormAndLargestValue) {
  using trace::distance;
  EXPECT_EQ(distance(DType::float32, stats(0, 0, 2, 5), stats(0, 0, 2, 5)), 0);
  EXPECT_NEAR(distance(DType::float32, stats(0, 0, 2, 5), stats(0, 0, 2, 5.5)), 0.5 / 5.5, 1e-12);
  EXPECT_NEAR(distance(DType::float32, stats(0, 0, 2, 5), stats(0, 0, 1, 5)), 0.5, 1e-12);
  EXPECT_EQ(distance(DType::float32, stats(1, 0, 2, 5), stats(0, 0, 2, 5)), trace::kOtherKind);
  EXPECT_EQ(distance(DType::float32, stats(0, 1, 2, 5), stats(1, 0, 2, 5)), trace::kOtherKind);
  StatsRow some = stats(0, 0, 1, 0), other = some;
  some.zero = 4;
  other.zero = 5;
  EXPECT_NEAR(distance(DType::boolean, some, other), 0.1, 1e-12);
  EXPECT_EQ(distance(DType::float32, some, other), 0);  // rounding makes and removes zeros
}

TEST(Bounds, TheCoarsestFormatOfTheStepDecides) {
  using Environment = std::map<std::string, std::string>;
  trace::StepBound bound(Environment{{"tf32_cublas", "false"}}), tf32(Environment{{"tf32_cublas", "true"}});
  bound.use(DType::float64);
  EXPECT_LT(bound.now(), 1e-7);
  bound.use(DType::float32);
  tf32.use(DType::float32);
  EXPECT_NEAR(bound.now(), 0.000345, 1e-6);
  EXPECT_NEAR(tf32.now(), 0.03125, 1e-6);
  bound.use(DType::bfloat16);
  bound.use(DType::int64);
  bound.use(DType::float32);
  EXPECT_NEAR(bound.now(), 0.088, 1e-3);
}

/// A recording as if a GPU had made it, whose values differ from a CPU's as those of weights that are
/// `factor` as large differ from the recorded ones.
Recording recorded_elsewhere(const std::string& name, float factor) {
  Recording recording = record(program(name).make(3, at::kFloat));
  for (Slot& slot : recording.doc.slots) slot.device = "cuda:0";
  recording.doc.environment["tf32_cublas"] = "false";
  for (auto& [path, tensor] : recording.data)
    if (path.starts_with("parameters/")) tensor = tensor * factor;
  return recording;
}

TEST(Bounds, AStepThatRoundsOtherwiseComesBackWithinThem) {
  int within = 0;
  for (const Program& p : programs()) {
    if (p.random || p.autocast) continue;
    SCOPED_TRACE(p.name);
    const VerifyResult near = verify(replayer_of(recorded_elsewhere(p.name, 1.0F + 0x1p-20F)));
    EXPECT_EQ(near.recorded_on, "cuda:0");
    EXPECT_EQ(near.replayed_on, "cpu");
    EXPECT_TRUE(near.elsewhere);
    EXPECT_FALSE(near.bit_exact);
    EXPECT_GT(near.mismatched, 0);
    EXPECT_GT(near.distance, 0);
    within += near.outside == 0;
    const VerifyResult far = verify(replayer_of(recorded_elsewhere(p.name, 1.01F)));
    EXPECT_GT(far.outside, 0);
    ASSERT_NE(far.first_mismatch, kNone);
  }
  EXPECT_GT(within, 0);
}

/// As another CPU rounds it, whose file says `processor`.
Recording recorded_on(const std::string& processor) {
  Recording recording = record(program("mlp").make(3, at::kFloat));
  if (!processor.empty()) recording.doc.environment["cpu_model"] = processor;
  for (auto& [path, tensor] : recording.data)
    if (path.starts_with("parameters/")) tensor = tensor * (1.0F + 0x1p-20F);
  return recording;
}

TEST(Bounds, AnotherProcessorsRoundingIsWithinThem) {
  const VerifyResult result = verify(replayer_of(recorded_on("another processor")));
  EXPECT_TRUE(result.elsewhere);
  EXPECT_FALSE(result.bit_exact);
  EXPECT_EQ(result.outside, 0);
  EXPECT_GT(result.distance, 0);
  Recording same_bits = record(program("mlp").make(3, at::kFloat));
  same_bits.doc.environment["cpu_model"] = "another processor";
  const VerifyResult exact = verify(replayer_of(same_bits));
  EXPECT_TRUE(exact.bit_exact);
  EXPECT_FALSE(exact.elsewhere);
}

TEST(Bounds, ThisProcessorHasNone) {
  const VerifyResult result = verify(replayer_of(recorded_on("")));
  EXPECT_FALSE(result.elsewhere);
  EXPECT_FALSE(result.bit_exact);
  EXPECT_EQ(result.outside, 0);
  EXPECT_EQ(result.bound, 0);
}

}  // namespace
}  // namespace nanquest::testing
