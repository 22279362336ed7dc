#include <gtest/gtest.h>

#include "probe/trace/culprit.h"
#include "tests/record/programs.h"

namespace nanquest {
namespace {

using testing::culprit_op;
using testing::kInf;
using testing::kNaN;
using testing::leaf;
using testing::module_of;
using testing::TinyNet;

TEST(Culprit, AHealthyStepHasNone) {
  TinyNet net;
  Recording rec = record_step(net.state(), [&] { return net.step(); });
  EXPECT_FALSE(find_culprit(rec.doc));
  EXPECT_EQ(rec.doc.culprit.op, kNone);
}

TEST(Culprit, HalfOverflowIsTheOpThatOverflowed) {
  const at::Tensor w = leaf(at::full({4, 4}, 300.f));
  const at::Tensor x = at::full({2, 4}, 300.f);
  StepState state;
  state.parameters = {{"w", w}};
  state.batch = {{"x", x}};
  Recording rec = record_step(state, [&] {
    at::Tensor h;
    {
      const ModuleScope scope("mlp", "Mlp");
      h = at::mm(x.to(at::kHalf), w.to(at::kHalf));
    }
    at::Tensor loss = at::softmax(h.to(at::kFloat), 1).log().mean();
    loss.backward();
    return loss;
  });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(culprit_op(rec.doc).name, "aten::mm");
  EXPECT_EQ(module_of(rec.doc, culprit_op(rec.doc)), "mlp");
  EXPECT_TRUE(culprit_op(rec.doc).flags & kOpBirthFiniteAbove);
  EXPECT_EQ(rec.doc.culprit.value, "+inf");
  EXPECT_EQ(rec.doc.culprit.count, 8u);
  EXPECT_EQ(rec.doc.culprit.first, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(rec.doc.culprit.phase, Phase::forward);
  EXPECT_EQ(rec.doc.culprit.lineage.front(), rec.doc.culprit.op);
  EXPECT_GE(rec.doc.culprit.lineage.size(), 3u);
  const OpRow& last = rec.doc.ops.at(static_cast<std::size_t>(rec.doc.culprit.lineage.back()));
  EXPECT_EQ(last.name, "aten::mean") << "the way ends at the loss, not at a gradient";
}

TEST(Culprit, AMaskThatLeavesSomethingIsNoCulprit) {
  const at::Tensor scores = leaf(at::randn({3, 3}));
  const at::Tensor mask = at::ones({3, 3}, at::kBool).triu(1);
  Recording rec = record_step({}, [&] {
    at::Tensor loss = at::softmax(scores.masked_fill(mask, -kInf), 1).pow(2).sum();
    loss.backward();
    return loss;
  });
  EXPECT_FALSE(find_culprit(rec.doc)) << describe_culprit(rec.doc);
  EXPECT_FALSE(rec.doc.culprit.suppressed.empty());
}

TEST(Culprit, AllMaskedRowIsTheSoftmaxNotTheMask) {
  const at::Tensor scores = leaf(at::randn({2, 3}));
  at::Tensor mask = at::zeros({2, 3}, at::kBool);
  mask.select(0, 1).fill_(true);
  Recording rec = record_step({}, [&] {
    at::Tensor loss = at::softmax(scores.masked_fill(mask, -kInf), 1).sum();
    loss.backward();
    return loss;
  });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(culprit_op(rec.doc).name, "aten::_softmax");
  EXPECT_EQ(rec.doc.culprit.value, "nan");
  EXPECT_EQ(rec.doc.culprit.count, 3u);
}

TEST(Culprit, LogOfZeroIsTheLog) {
  const at::Tensor p = leaf(at::tensor({0.f, 0.5f}));
  Recording rec = record_step({}, [&] {
    at::Tensor loss = -(p.relu().log()).mean();
    loss.backward();
    return loss;
  });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(culprit_op(rec.doc).name, "aten::log");
  EXPECT_EQ(rec.doc.culprit.value, "-inf");
}

TEST(Culprit, AnUnusedBranchInForwardIsInnocentButItsGradientIsNot) {
  const at::Tensor x = leaf(at::tensor({0.f, 4.f}));
  StepState state;
  state.parameters = {{"x", x}};
  Recording rec = record_step(state, [&] {
    at::Tensor loss = at::where(x > 0, x.sqrt(), at::zeros({2})).sum();
    loss.backward();
    return loss;
  });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(rec.doc.culprit.phase, Phase::backward);
  EXPECT_EQ(culprit_op(rec.doc).node, "SqrtBackward0");
}

TEST(Culprit, SquareRootAtZeroIsFoundInBackward) {
  const at::Tensor x = leaf(at::zeros({3}));
  StepState state;
  state.parameters = {{"x", x}};
  Recording rec = record_step(state, [&] {
    at::Tensor loss = x.pow(2).sum().sqrt();
    loss.backward();
    return loss;
  });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(rec.doc.culprit.phase, Phase::backward);
  EXPECT_EQ(culprit_op(rec.doc).node, "SqrtBackward0");
  ASSERT_NE(culprit_op(rec.doc).forward_op, kNone);
  EXPECT_EQ(rec.doc.ops[static_cast<std::size_t>(culprit_op(rec.doc).forward_op)].name, "aten::sqrt");
}

TEST(Culprit, OneOfTwoViewsIsNotBlamedForTheOther) {
  const at::Tensor base = at::zeros({4}), zero = at::zeros({2});
  const Recording rec = record_step({}, [&] {
    at::Tensor left = base.narrow(0, 0, 2), right = base.narrow(0, 2, 2);
    at::log_out(left, zero);
    at::sqrt_out(right, zero - 1);  // its result is never read
    return left.sum();
  });
  ASSERT_NE(rec.doc.culprit.op, kNone);
  EXPECT_EQ(culprit_op(rec.doc).name, "aten::log");
  EXPECT_EQ(rec.doc.culprit.value, "-inf");
  ASSERT_EQ(rec.doc.culprit.suppressed.size(), 1u);
  EXPECT_EQ(rec.doc.ops[static_cast<std::size_t>(rec.doc.culprit.suppressed[0])].name, "aten::sqrt");
}

TEST(Culprit, BadInputIsBlamedOnTheInput) {
  TinyNet net;
  net.x.select(0, 4).select(0, 2).fill_(kNaN);
  Recording rec = record_step(net.state(), [&] { return net.step(); });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(rec.doc.culprit.origin, "input");
  EXPECT_EQ(rec.doc.culprit.tensor_name, "x");
  EXPECT_EQ(rec.doc.culprit.phase, Phase::input);
  EXPECT_EQ(rec.doc.culprit.first, (std::vector<std::int64_t>{4, 2}));
}

TEST(Culprit, BadWeightIsBlamedBeforeTheOpsThatSpreadIt) {
  TinyNet net;
  {
    const at::NoGradGuard no_grad;
    net.w2.select(0, 1).fill_(kInf);
  }
  Recording rec = record_step(net.state(), [&] { return net.step(); });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(rec.doc.culprit.origin, "parameter");
  EXPECT_EQ(rec.doc.culprit.tensor_name, "head.weight");
}

TEST(Culprit, OptimizerPhaseIsCovered) {
  TinyNet net;
  at::Tensor moment = at::zeros({16, 8});
  StepState state = net.state();
  state.optimizer = {{"v.hidden.weight", moment}};
  Recording rec = record_step(state, [&] {
    at::Tensor loss = net.step();
    const PhaseScope phase(Phase::optimizer);
    const at::NoGradGuard no_grad;
    moment.mul_(0.9);                                      // stays zero
    net.w1.sub_((net.w1.grad() * 0).div_(moment.sqrt()));  // 0 / 0
    return loss;
  });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(rec.doc.culprit.phase, Phase::optimizer);
  EXPECT_EQ(culprit_op(rec.doc).name, "aten::div_");
}

TEST(Culprit, AHiddenOverflowIsSilentDamage) {
  const at::Tensor x = at::full({3}, 60000.f).to(at::kHalf);
  Recording rec =
      record_step({}, [&] { return (at::ones({3}).to(at::kHalf) / (x + x)).sum().to(at::kFloat); });
  ASSERT_TRUE(find_culprit(rec.doc));
  EXPECT_EQ(rec.doc.culprit.value, "silent");
  EXPECT_EQ(culprit_op(rec.doc).name, "aten::add");
}

TEST(Culprit, AnOverflowAfterManyMasksIsJudged) {
  const at::Tensor x = at::full({3}, 300.f).to(at::kHalf), zero = at::zeros({3});
  const at::Tensor all = at::ones({3}, at::kBool);
  const Recording rec = record_step({}, [&] {
    for (int i = 0; i < 100; ++i) {
      (void)at::masked_fill(zero, all, -kInf);
      (void)zero.log();
    }
    return at::rsqrt(x * x).to(at::kFloat).sum();
  });
  int overflows = 0;
  for (const OpRow& op : rec.doc.ops) overflows += (op.flags & kOpBirthFiniteAbove) != 0;
  EXPECT_EQ(overflows, 1);
  ASSERT_NE(rec.doc.culprit.op, kNone);
  EXPECT_EQ(culprit_op(rec.doc).name, "aten::mul");
  EXPECT_EQ(rec.doc.culprit.value, "silent");
}

TEST(Culprit, UninitialisedMemoryIsNeverBlamed) {
  at::Tensor garbage = at::full({64}, kNaN);
  const Recording rec = record_step({}, [&] {
    at::Tensor t = at::empty({64});
    t.fill_(1);
    return t.sum();
  });
  EXPECT_EQ(rec.doc.culprit.op, kNone);
}

/// Internal linkage: its name is only in the file's symbol table.
[[gnu::noinline]] at::Tensor log_of_a_stranger(const at::Tensor& x) {
  const at::Tensor y = x.log();
  return y.sum();
}

TEST(Culprit, TheStackNamesTheFunctionThatCalledTheOp) {
  const at::Tensor x = leaf(at::zeros({2}));
  const Recording rec = record_step({}, [&] { return log_of_a_stranger(x); });
  ASSERT_NE(rec.doc.culprit.op, kNone);
  const OpRow& op = culprit_op(rec.doc);
  ASSERT_NE(op.stack, kNone);
  const auto& frames = rec.doc.stacks[static_cast<std::size_t>(op.stack)];
  ASSERT_FALSE(frames.empty());
  EXPECT_TRUE(frames.front().starts_with("record_test+0x")) << frames.front();
  EXPECT_NE(frames.front().find("log_of_a_stranger(at::Tensor const&)"), std::string::npos) << frames.front();
  for (const std::string& frame : frames) EXPECT_EQ(frame.find("libtorch_cpu"), std::string::npos) << frame;
}

}  // namespace
}  // namespace nanquest
