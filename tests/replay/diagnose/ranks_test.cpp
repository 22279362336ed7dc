// What the files of several ranks say together.
#include "replay/cause/ranks.h"

#include "tests/replay/diagnose/sample.h"

namespace nanquest {
namespace {

using testing::Incident;
using testing::kNaN;
using testing::leaf;

TEST(Ranks, ARankWhoseOwnWeightsWereBadSaysSo) {
  at::Tensor values = at::ones({3, 3});
  values[1][1] = kNaN;
  const at::Tensor w = leaf(values), x = at::ones({2, 3});
  StepState state;
  state.rank = 1;
  state.world_size = 2;
  state.parameters = {{"fc.weight", w}};
  state.batch = {{"x", x}};
  const Verdict v = Incident(state, [&] {
                      const at::Tensor loss = at::mm(x, w).sum();
                      loss.backward();
                      return loss;
                    }).verdict();
  ASSERT_TRUE(v.ranks.has_value());
  EXPECT_TRUE(v.ranks->local);
  EXPECT_EQ(
      v.ranks->text,
      "This is rank 1 of 2: its parameter fc.weight was bad when the step began. Rank 0 left no file of this "
      "step here.");
  ASSERT_TRUE(v.ranks->first.has_value());
  EXPECT_EQ(v.ranks->first->origin, Origin::parameter);
  EXPECT_EQ(v.ranks->first->tensor, "fc.weight");
}

/// The verdict on the step that two processes recorded which hold half of every weight each; rank 1's weights
/// were NaN (tests/golden/sharded).
Verdict of_rank(int rank) {
  const std::string path =
      std::string(NANQUEST_SOURCE) + "/tests/golden/sharded/step-00000003.r" + std::to_string(rank) + ".h5";
  auto replayer = Replayer::open(path);
  EXPECT_TRUE(replayer.ok()) << replayer.error().text();
  if (!replayer) return {};
  return diagnose(make_case(*replayer), reproduction_of(verify(*replayer)), path, {.try_fixes = false});
}

TEST(Ranks, ShardedWeightsAreTheRanksOwnNotACollectives) {
  const Verdict v = of_rank(1);
  EXPECT_EQ(v.origin, Origin::parameter) << v.explanation;
  EXPECT_EQ(v.phase, Phase::input);
  EXPECT_EQ(v.cause, Label::bad_state) << v.explanation;
  EXPECT_EQ(v.culprit.op, "fsdp::all_gather_copy_in");
  EXPECT_EQ(v.culprit.count, 1u);
  EXPECT_EQ(v.precision.verdict, PrecisionVerdict::not_a_precision_matter);
  ASSERT_TRUE(v.ranks.has_value());
  EXPECT_TRUE(v.ranks->local) << v.ranks->text;
  EXPECT_TRUE(v.ranks->arrived_by.empty()) << v.ranks->arrived_by;
  EXPECT_NE(v.ranks->text.find("This is rank 1 of 2: its parameter"), std::string::npos) << v.ranks->text;
  EXPECT_NE(v.ranks->text.find("Rank 0 got it by a collective"), std::string::npos) << v.ranks->text;
}

TEST(Ranks, TheOtherRankGotItAndNamesTheFirst) {
  const Verdict v = of_rank(0);
  EXPECT_EQ(v.culprit.op, "c10d::_allgather_base_");
  ASSERT_TRUE(v.ranks.has_value());
  EXPECT_FALSE(v.ranks->local);
  EXPECT_EQ(v.ranks->arrived_by, "c10d::_allgather_base_");
  ASSERT_TRUE(v.ranks->first.has_value()) << v.ranks->text;
  EXPECT_EQ(v.ranks->first->rank, 1);
  EXPECT_EQ(v.ranks->first->origin, Origin::parameter);
  EXPECT_NE(v.ranks->text.find("Rank 1 was first: its parameter"), std::string::npos) << v.ranks->text;
}

}  // namespace
}  // namespace nanquest
