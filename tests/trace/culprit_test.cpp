// Which op is blamed, on steps written by hand; tests/record/culprit_test.cpp does the same with real ones.
#include "probe/trace/culprit.h"

#include <gtest/gtest.h>

#include "probe/trace/walk.h"
#include "tests/trace/steps.h"

namespace nanquest::testing {
namespace {

TEST(Blame, GoesToTheWriterOfTheElementsThatWereRead) {
  Steps s;
  const SlotId base = s.slot(8), out = s.slot(1);
  const OpId guilty = s.op("aten::log_", {part(base, 0, 4)}, {part(base, 0, 4, kOneInf)}, kOpBirth);
  const OpId other = s.op("aten::sqrt_", {part(base, 4, 8)}, {part(base, 4, 8, kOneNan)}, kOpBirth);
  const OpId sum = s.loss("aten::sum", {part(base, 0, 4, kOneInf)}, whole(out, 1, kOneInf));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, guilty.row());
  EXPECT_EQ(s.doc.culprit.value, "+inf");
  EXPECT_EQ(s.doc.culprit.lineage, numbers({guilty, sum}));
  EXPECT_EQ(s.doc.culprit.suppressed, numbers({other}));
}

TEST(Blame, AMinusInfinityIsAKindOfItsOwn) {
  Steps s;
  const SlotId logits = s.slot(4), out = s.slot(1);
  const BadCounts minus{0, 0, 1};
  const OpId guilty = s.op("aten::log", {}, {whole(logits, 4, minus)}, kOpBirth);
  const OpId sum = s.loss("aten::sum", {whole(logits, 4, minus)}, whole(out, 1, minus));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, guilty.row());
  EXPECT_EQ(s.doc.culprit.value, "-inf");
  EXPECT_EQ(s.doc.culprit.lineage, numbers({guilty, sum}));
  EXPECT_EQ(value_kinds(minus), kKindNegInf);
  EXPECT_EQ(value_kinds({1, 1, 1}), kKindNan | kKindPosInf | kKindNegInf);
}

TEST(Blame, ReachesEveryPieceOfAnAssembledBuffer) {
  Steps s;
  const SlotId base = s.slot(8), out = s.slot(1);
  const OpId first = s.op("aten::log_", {part(base, 0, 4)}, {part(base, 0, 4, kOneInf)}, kOpBirth);
  s.op("aten::sqrt_", {part(base, 4, 8)}, {part(base, 4, 8, kOneNan)}, kOpBirth);
  s.loss("aten::sum", {whole(base, 8, {1, 1, 0})}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, first.row()) << "the earliest of those that did harm";
  const TraceGraph graph(s.doc);
  const std::vector<Candidate> all = candidates_for_blame(graph, Walk(graph));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (Candidate{Candidate::Kind::op, first, {}}));
  EXPECT_TRUE(s.doc.culprit.suppressed.empty());
}

TEST(Blame, ColumnsOfOneProjectionAreTold) {
  Steps s;
  const SlotId qkv = s.slot(72), out = s.slot(1);
  const auto chunk = [&](std::int64_t at, BadCounts bad = {}) { return View{qkv, at, {6, 4}, {12, 1}, bad}; };
  const OpId q = s.op("aten::div_", {chunk(0)}, {chunk(0, kOneNan)}, kOpBirth);
  s.op("aten::exp_", {chunk(8)}, {chunk(8, kOneInf)}, kOpBirth);
  s.loss("aten::sum", {chunk(0, kOneNan)}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, q.row());
}

TEST(Blame, WhatWasOverwrittenIsForgotten) {
  Steps s;
  const SlotId base = s.slot(4), out = s.slot(1);
  s.op("aten::log", {}, {whole(base, 4, kOneInf)}, kOpBirth);
  s.op("aten::zero_", {whole(base, 4)}, {whole(base, 4)});
  const OpId late = s.op("aten::sqrt_", {part(base, 2, 4)}, {part(base, 2, 4, kOneNan)}, kOpBirth);
  s.loss("aten::sum", {whole(base, 4, kOneNan)}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, late.row());
  EXPECT_EQ(s.doc.culprit.suppressed.size(), 1u);
}

TEST(Blame, APieceThatWasOverwrittenIsForgottenWhileOthersAreNot) {
  Steps s;
  const SlotId base = s.slot(4), out = s.slot(1);
  const OpId old = s.op("aten::log_", {part(base, 0, 2)}, {part(base, 0, 2, kOneInf)}, kOpBirth);
  s.op("aten::zero_", {part(base, 0, 2)}, {part(base, 0, 2)});
  const OpId guilty = s.op("aten::sqrt_", {part(base, 2, 4)}, {part(base, 2, 4, kOneNan)}, kOpBirth);
  s.loss("aten::sum", {whole(base, 4, kOneNan)}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, guilty.row());
  EXPECT_EQ(s.doc.culprit.suppressed, numbers({old}));
}

TEST(Blame, AWeightBeforeAnInputBeforeAnOp) {
  for (const bool weight : {true, false}) {
    Steps s;
    const SlotId x = s.slot(4, SlotOrigin::input, "x"), w = s.slot(4, SlotOrigin::parameter, "fc.weight");
    const SlotId h = s.slot(4), out = s.slot(1);
    const OpId birth = s.op("aten::log", {}, {whole(h, 4, kOneInf)}, kOpBirth);
    const OpId reader =
        s.op("aten::mul",
             {whole(h, 4, kOneInf), whole(x, 4, kOneNan), whole(w, 4, weight ? kOneNan : BadCounts{})},
             {whole(out, 1, kOneNan)});
    s.doc.loss = s[reader].first_output;
    ASSERT_TRUE(find_culprit(s.doc));
    EXPECT_EQ(s.doc.culprit.op, reader.row());
    EXPECT_NE(s.doc.culprit.op, birth.row());
    EXPECT_EQ(s.doc.culprit.origin, weight ? "parameter" : "input");
    EXPECT_EQ(s.doc.culprit.tensor_name, weight ? "fc.weight" : "x");
    EXPECT_EQ(s.doc.culprit.phase, Phase::input);
    EXPECT_EQ(
        describe_culprit(s.doc).find(weight ? "parameter fc.weight held 1 x nan" : "input x held 1 x nan"),
        0u)
        << describe_culprit(s.doc);
  }
}

TEST(Blame, AnUpdateThatWroteBadValues) {
  Steps s;
  const SlotId w = s.slot(4, SlotOrigin::parameter, "w"), m = s.slot(4, SlotOrigin::optimizer_state, "m");
  const OpId square = s.op("aten::mul_", {whole(m, 4)}, {whole(m, 4, kOneInf)}, kOpBirth, Phase::optimizer);
  const OpId step = s.op("aten::addcdiv_", {whole(w, 4), whole(m, 4, kOneInf)}, {whole(w, 4, kOneNan)}, 0,
                         Phase::optimizer);
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, square.row());
  EXPECT_EQ(s.doc.culprit.phase, Phase::optimizer);
  EXPECT_EQ(s.doc.culprit.lineage, numbers({square})) << "the moment is harm enough";
  (void)step;
}

TEST(Blame, AHiddenOverflowOnlyWhereNothingIsWorse) {
  Steps s;
  const SlotId h = s.slot(4), out = s.slot(1);
  const OpId over =
      s.op("aten::mm", {}, {{h, 0, {4}, {1}, kOneInf, DType::float16}}, kOpBirth | kOpBirthFiniteAbove);
  s.loss("aten::reciprocal", {whole(h, 4, kOneInf)}, whole(out, 1));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.value, "silent");
  EXPECT_EQ(s.doc.culprit.op, over.row());
  EXPECT_EQ(s.doc.culprit.lineage, numbers({over}));
  EXPECT_TRUE(s.doc.culprit.suppressed.empty());
}

TEST(Blame, ANanDoesNotComeFromAMaskBesideIt) {
  // x holds an intended -inf in one half and a NaN in the other.
  Steps s;
  const SlotId x = s.slot(8), mask = s.slot(4, SlotOrigin::external), out = s.slot(1);
  const BadCounts masked{0, 0, 1}, mixed{1, 0, 1};
  const OpId log = s.op("aten::log_", {part(x, 0, 4)}, {part(x, 0, 4, masked)}, kOpBirth);
  const OpId root = s.op("aten::sqrt_", {part(x, 4, 8)}, {part(x, 4, 8, kOneNan)}, kOpBirth);
  const SlotId y = s.slot(8);
  s.op("aten::add", {whole(x, 8, mixed), whole(mask, 4, masked)}, {whole(y, 8, mixed)});
  s.loss("aten::sum", {whole(y, 8, mixed)}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, root.row()) << "log " << log.row();
  EXPECT_EQ(s.doc.culprit.value, "nan");
  EXPECT_EQ(s.doc.culprit.origin, "op");
  EXPECT_EQ(s.doc.culprit.suppressed, numbers({log}));
}

TEST(Blame, OfAMixedCulpritOnlyTheKindThatDidTheHarmIsNamed) {
  Steps s;
  const SlotId x = s.slot(4), out = s.slot(1);
  const OpId root = s.op("aten::log", {}, {whole(x, 4, {1, 0, 2})}, kOpBirth);
  s.loss("aten::sum", {whole(x, 4, {1, 0, 2})}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, root.row());
  EXPECT_EQ(s.doc.culprit.value, "nan");
  EXPECT_EQ(s.doc.culprit.count, 1u);
  EXPECT_TRUE(s.doc.culprit.first.empty()) << "the first bad element may be an innocent one";
}

TEST(Blame, AnOpThatTurnsMasksIntoNanIsNamed) {
  Steps s;
  const SlotId mask = s.slot(4, SlotOrigin::external), y = s.slot(4), out = s.slot(1);
  const OpId softmax = s.op("aten::_softmax", {whole(mask, 4, {0, 0, 4})}, {whole(y, 4, {4, 0, 0})});
  s.loss("aten::sum", {whole(y, 4, {4, 0, 0})}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, softmax.row());
  EXPECT_EQ(s.doc.culprit.origin, "op");
}

TEST(Blame, OfTwoViewsOfOneOutsideStorageOnlyTheBadOne) {
  Steps s;
  const SlotId base = s.slot(8, SlotOrigin::input, "base"), a = s.slot(4), out = s.slot(1);
  s.op("aten::neg", {part(base, 0, 4)}, {whole(a, 4)});
  const OpId bad = s.op("aten::log", {part(base, 4, 8)}, {whole(s.slot(4), 4, kOneInf)}, kOpBirth);
  const OpId reader = s.loss("aten::dot", {whole(a, 4), part(base, 4, 8, kOneNan)}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, reader.row());
  EXPECT_EQ(s.doc.culprit.tensor_name, "base");
  EXPECT_EQ(s.doc.culprit.suppressed, numbers({bad}));
}

TEST(Blame, WhatAnOpKeptToItselfForItsBackwardIsNoOutsideValue) {
  Steps s;
  const SlotId x = s.slot(4, SlotOrigin::input, "x"), y = s.slot(4), kept = s.slot(4, SlotOrigin::external);
  const SlotId g = s.slot(4), out = s.slot(4);
  const OpId cell = s.op("aten::gru_cell", {whole(x, 4, kOneNan)}, {whole(y, 4, kOneNan)});
  const OpId back =
      s.op("aten::mul", {whole(g, 4), whole(kept, 4, kOneNan)}, {whole(out, 4, kOneNan)}, 0, Phase::backward);
  get(s.doc, TensorId{s.doc.args.back().tensor}).flags |= kTensorRequiresGrad;
  s.doc.loss = s[cell].first_output;
  s.doc.gradients = {s[back].first_output};
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, cell.row());
  EXPECT_EQ(s.doc.culprit.tensor_name, "x");
}

TEST(Blame, WhatHasNoNameIsNamedByWhoReadsItFirst) {
  Steps s;
  const SlotId x = s.slot(4, SlotOrigin::external), y = s.slot(4, SlotOrigin::input, "y"), out = s.slot(1);
  s.loss("aten::mul", {whole(y, 4), whole(x, 4, kOneNan)}, whole(out, 1, kOneNan));
  const auto names = [](const OpRow&, std::int32_t position) { return position == 1 ? "other" : "self"; };
  ASSERT_TRUE(find_culprit(s.doc, names));
  EXPECT_EQ(s.doc.culprit.origin, "input");
  EXPECT_EQ(s.doc.culprit.phase, Phase::input);
  EXPECT_EQ(s.doc.culprit.tensor_name, "tensor first read by aten::mul, argument other");
  ASSERT_TRUE(find_culprit(s.doc)) << "the name stays";
  EXPECT_EQ(s.doc.culprit.tensor_name, "tensor first read by aten::mul, argument other");
}

TEST(Blame, MemoryThatLivesOnIsHarmedIfItStaysBad) {
  for (const bool mended : {false, true})
    for (const SlotOrigin origin : {SlotOrigin::buffer, SlotOrigin::external, SlotOrigin::input}) {
      Steps s;
      const SlotId shadow = s.slot(4, origin), x = s.slot(4);
      const OpId log = s.op("aten::log", {}, {whole(x, 4, kOneInf)}, kOpBirth);
      s.op("aten::add_", {whole(shadow, 4), whole(x, 4, kOneInf)}, {whole(shadow, 4, kOneInf)});
      if (mended) s.op("aten::clamp_", {whole(shadow, 4, kOneInf)}, {whole(shadow, 4)});
      const bool harm = !mended && origin != SlotOrigin::input;
      EXPECT_EQ(find_culprit(s.doc), harm);
      if (harm) {
        EXPECT_EQ(s.doc.culprit.op, log.row());
      }
    }
}

/// 1e5 ops, all bad; each writes one row of a buffer and reads all rows before it: the most expensive case.
TEST(Blame, ALongChainOverOneBufferComesBackToItsStart) {
  constexpr std::int64_t n = 100'000;
  Steps s;
  const SlotId buffer = s.slot(n), out = s.slot(1);
  s.op("aten::log", {}, {part(buffer, 0, 1, kOneInf)}, kOpBirth);
  for (std::int64_t i = 1; i < n; ++i)
    s.op("aten::mul", {part(buffer, 0, i, kOneNan)}, {part(buffer, i, i + 1, kOneNan)});
  s.loss("aten::sum", {whole(buffer, n, kOneNan)}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(s.doc.culprit.op, 0);
  EXPECT_EQ(s.doc.culprit.lineage.size(), 2u) << "the shortest way: the loss reads the first row too";
}

}  // namespace
}  // namespace nanquest::testing
