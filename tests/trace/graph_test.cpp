#include <gtest/gtest.h>

#include <random>

#include "probe/trace/births.h"
#include "probe/trace/culprit.h"
#include "probe/trace/op_facts.h"
#include "tests/trace/steps.h"

namespace nanquest::testing {
namespace {

std::vector<OpId> producers_of(const TraceGraph& graph, OpId op) {
  std::vector<OpId> found;
  for (const TensorId row : graph.reads(op)) found.push_back(graph.producer(row, op));
  return found;
}

TEST(Graph, FollowsElementsNotStorages) {
  Steps s;
  const SlotId base = s.slot(8), x = s.slot(4, SlotOrigin::input), out = s.slot(1);
  const OpId left = s.op("aten::mul_", {part(base, 0, 4), whole(x, 4)}, {part(base, 0, 4)});
  const OpId right = s.op("aten::mul_", {part(base, 4, 8), whole(x, 4)}, {part(base, 4, 8)});
  const OpId reads_left = s.op("aten::sum", {part(base, 1, 3)}, {whole(out, 1)});
  const OpId over = s.op("aten::exp_", {part(base, 2, 6)}, {part(base, 2, 6)});
  const OpId reads_all = s.op("aten::sum", {whole(base, 8)}, {whole(out, 1)});
  const TraceGraph graph(s.doc);
  EXPECT_EQ(producers_of(graph, right).front(), OpId{}) << "nobody wrote its half before";
  EXPECT_EQ(producers_of(graph, reads_left), std::vector<OpId>{left});
  EXPECT_EQ(producers_of(graph, reads_all), std::vector<OpId>{over});
  std::vector<OpId> seen;
  graph.each_write_behind(graph.reads(reads_all)[0], reads_all, [&](const TraceGraph::Write& write) {
    seen.push_back(write.op);
    return false;
  });
  EXPECT_EQ(seen, (std::vector<OpId>{over, right, left}));
  EXPECT_EQ(graph.consumers(left), (std::vector<OpId>{reads_left, over, reads_all}));
  EXPECT_EQ(graph.consumers(right), (std::vector<OpId>{over, reads_all}));
}

TEST(Graph, AWholeOverwriteEndsTheSearch) {
  Steps s;
  const SlotId base = s.slot(4), out = s.slot(1);
  const OpId first = s.op("aten::exp", {}, {whole(base, 4)});
  const OpId zero = s.op("aten::zero_", {whole(base, 4)}, {whole(base, 4)});
  const OpId last = s.op("aten::sum", {whole(base, 4)}, {whole(out, 1)});
  const TraceGraph graph(s.doc);
  int seen = 0;
  const auto search = graph.each_write_behind(graph.reads(last)[0], last, [&](const TraceGraph::Write&) {
    ++seen;
    return false;
  });
  EXPECT_TRUE(search.ended);
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(graph.consumers(first).empty()) << "zero_ takes nothing in";
  EXPECT_EQ(graph.consumers(zero), std::vector<OpId>{last});
}

TEST(Graph, WhatIsOverwrittenIsNoInput) {
  Steps s;
  const SlotId a = s.slot(4), b = s.slot(4, SlotOrigin::input);
  s.op("aten::exp", {whole(b, 4)}, {whole(a, 4)});
  for (const char* name : {"aten::copy_", "aten::fill_", "aten::normal_", "aten::_foreach_copy_"}) {
    const OpId id = s.op(name, {whole(a, 4), whole(b, 4)}, {whole(a, 4)});
    const TraceGraph graph(s.doc);
    ASSERT_EQ(graph.reads(id).size(), 1u) << name;
    EXPECT_EQ(graph.slot(graph.reads(id)[0]), b) << name;
  }
  const OpId add = s.op("aten::add_", {whole(a, 4), whole(b, 4)}, {whole(a, 4)});
  EXPECT_EQ(TraceGraph(s.doc).reads(add).size(), 2u);
  // The schema says more: here argument 1 is an out=.
  const TraceGraph told(s.doc, [](OpId, std::int32_t position) { return position != 1; });
  EXPECT_EQ(told.reads(add).size(), 1u);
  EXPECT_EQ(told.slot(told.reads(add)[0]), a);
}

TEST(Graph, WhatOnlyDescribesMemoryWritesNothing) {
  Steps s;
  const SlotId data = s.slot(4);
  const OpId made = s.op("nanquest::host_write", {}, {whole(data, 4, kOneInf)}, kOpHostWrite);
  const OpId detached = s.op("aten::detach_", {whole(data, 4, kOneInf)}, {whole(data, 4, kOneInf)});
  const OpId read = s.op("aten::mean", {whole(data, 4, kOneInf)}, {});
  const TraceGraph graph(s.doc);
  EXPECT_TRUE(computes_nothing(graph.op(detached)));
  EXPECT_FALSE(computes_nothing(graph.op(read)));
  EXPECT_EQ(graph.producer(graph.reads(read)[0], read), made);
  EXPECT_EQ(graph.written_counts(detached).pos_inf, 0u);
}

TEST(Graph, MemoryThatNobodyWroteHoldsNoValues) {
  Steps s;
  const SlotId a = s.slot(4), b = s.slot(4), out = s.slot(4);
  s.op("aten::empty", {}, {whole(a, 4)}, kOpUninitialised);
  const OpId early = s.op("aten::add", {whole(a, 4)}, {whole(out, 4)});
  s.op("aten::fill_", {whole(a, 4)}, {whole(a, 4)});
  const OpId late = s.op("aten::add", {whole(a, 4)}, {whole(out, 4)});
  s.op("aten::resize_", {whole(a, 4)}, {whole(a, 4)}, kOpUninitialised);
  const OpId again = s.op("aten::add", {whole(a, 4)}, {whole(out, 4)});
  s.op("aten::_ctc_loss", {}, {whole(out, 4), whole(b, 4)});
  const OpId scratch = s.op("aten::add", {whole(b, 4)}, {whole(out, 4)});
  const TraceGraph graph(s.doc);
  EXPECT_TRUE(graph.reads(early).empty());
  EXPECT_EQ(graph.reads(late).size(), 1u);
  EXPECT_TRUE(graph.reads(again).empty());
  EXPECT_TRUE(graph.reads(scratch).empty());
  EXPECT_EQ(graph.arguments(scratch).size(), 1u);
}

TEST(Graph, ListsAreOneArgument) {
  Steps s;
  const SlotId a = s.slot(2), b = s.slot(2);
  const OpId id = s.op("aten::_foreach_add_", {whole(a, 2), whole(a, 2), whole(b, 2)}, {});
  const auto list = [](std::int64_t length) {
    ArgRow token;
    token.kind = ArgKind::list;
    token.integer = length;
    return token;
  };
  // [a, [a]], b
  s.doc.args.insert(s.doc.args.begin() + 1, list(1));
  s.doc.args.insert(s.doc.args.begin(), list(2));
  s[id].arg_count = 5;
  const TraceGraph graph(s.doc);
  ASSERT_EQ(graph.arguments(id).size(), 3u);
  EXPECT_EQ(graph.arguments(id)[0].position, 0);
  EXPECT_EQ(graph.arguments(id)[1].position, 0);
  EXPECT_EQ(graph.arguments(id)[2].position, 1);
}

TEST(Graph, ModulesOfBackwardOpsAreThoseOfForward) {
  Steps s;
  const SlotId a = s.slot(1);
  s.doc.modules = {{"blocks.0", "Block"}, {"head", "Linear"}};
  const OpId first = s.op("aten::mm", {}, {whole(a, 1)}), second = s.op("aten::mm", {}, {whole(a, 1)});
  const OpId linked = s.op("aten::mul", {}, {whole(a, 1)}, 0, Phase::backward);
  const OpId numbered = s.op("aten::mul", {}, {whole(a, 1)}, 0, Phase::backward);
  const OpId unknown = s.op("aten::mul", {}, {whole(a, 1)}, 0, Phase::backward);
  s[first].module = 0, s[first].sequence = 7;
  s[second].module = 1, s[second].sequence = 8;
  s[linked].forward_op = first.row();
  s[numbered].sequence = 8;
  s[unknown].sequence = 9;
  {
    const TraceGraph graph(s.doc);
    EXPECT_EQ(graph.module_of(linked), "blocks.0");
    EXPECT_EQ(graph.module_of(numbered), "head");
    EXPECT_EQ(graph.forward_of(numbered), second);
    EXPECT_EQ(graph.forward_of(unknown), OpId{});
    EXPECT_EQ(graph.module_of(unknown), "");
  }
  s[first].sequence = 8;
  EXPECT_EQ(TraceGraph(s.doc).forward_of(numbered), OpId{}) << "two candidates decide nothing";
  s[first].micro_batch = 1;
  EXPECT_EQ(TraceGraph(s.doc).forward_of(numbered), second);
}

TEST(Graph, ConstantsThatAreNotFinite) {
  Steps s;
  const SlotId a = s.slot(1);
  const OpId id = s.op("aten::masked_fill", {whole(a, 1)}, {whole(a, 1)});
  EXPECT_FALSE(bad_constants(s.doc, id).any());
  ArgRow real;
  real.kind = ArgKind::real;
  real.real = -std::numeric_limits<double>::infinity();
  s.doc.args.push_back(real);
  s[id].arg_count = 2;
  EXPECT_TRUE(bad_constants(s.doc, id).infinite);
  EXPECT_FALSE(bad_constants(s.doc, id).nan);
}

TEST(Graph, IsSoundWhateverTheTablesSay) {
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    Steps s;
    const SlotId a = s.slot(8), b = s.slot(8, SlotOrigin::parameter);
    for (int k = 0; k < 6; ++k)
      s.op(k % 2 ? "aten::add_" : "aten::empty", {part(a, k, 8, kOneNan), whole(b, 8)},
           {part(a, 0, k + 1, kOneInf)});
    s.loss("aten::sum", {whole(a, 8, kOneNan)}, whole(b, 8, kOneNan));
    constexpr std::int32_t lies[] = {-7, -1, 0, 3, 1 << 20, INT32_MAX};
    for (int k = 0; k < 3; ++k) {
      OpRow& op = s.doc.ops[random() % s.doc.ops.size()];
      TensorRow& row = s.doc.tensors[random() % s.doc.tensors.size()];
      std::int32_t* const places[] = {&op.first_arg,
                                      &op.arg_count,
                                      &op.first_written,
                                      &op.written_count,
                                      &op.first_output,
                                      &op.output_count,
                                      &op.module,
                                      &op.forward_op,
                                      &row.slot,
                                      &row.stats,
                                      &s.doc.loss,
                                      &s.doc.args[random() % s.doc.args.size()].tensor,
                                      &s.doc.written[random() % s.doc.written.size()]};
      *places[random() % std::size(places)] = lies[random() % std::size(lies)];
      if (random() % 4 == 0) row.sizes[0] = std::int64_t{1} << 62;
      if (random() % 4 == 0) row.strides.clear();
    }
    const TraceGraph graph(s.doc);
    for (const OpId op : graph.ops()) {
      for (const TensorId row : graph.reads(op)) (void)graph.producer(row, op);
      (void)graph.consumers(op);
      (void)graph.module_of(op);
      (void)graph.written_counts(op);
    }
    (void)find_culprit(s.doc);
    (void)describe_culprit(s.doc);
  }
}

TEST(OpFacts, OneRuleForWhatIsRead) {
  const auto use = [](const char* op, DeclaredArgument argument) { return argument_use(op, argument); };
  EXPECT_TRUE(use("aten::add_", {"self", 0, true, false}).read);
  EXPECT_TRUE(use("aten::add_", {"self", 0, true, false}).written);
  EXPECT_FALSE(use("aten::copy_", {"self", 0, true, false}).read);
  EXPECT_TRUE(use("aten::copy_", {"src", 1, false, false}).read);
  EXPECT_FALSE(use("aten::mm", {"out", 2, true, true}).read);
  EXPECT_TRUE(use("aten::native_batch_norm", {"running_mean", 3, false, false}).written);
  EXPECT_TRUE(use("aten::native_batch_norm", {"running_mean", 3, false, false}).read);
  EXPECT_FALSE(use("aten::_ctc_loss_backward", {"log_alpha", 6, false, false}).read);
  EXPECT_TRUE(use("c10d::allreduce_", {"tensors", 0, false, false}).read);
  EXPECT_TRUE(use("c10d::allreduce_", {"tensors", 0, false, false}).written);
  EXPECT_FALSE(use("c10d::recv_", {"tensors", 0, false, false}).read);
  EXPECT_FALSE(use("_c10d_functional::wait_tensor", {"tensor", 0, false, false}).read);
  EXPECT_TRUE(use("fsdp::all_gather_copy_in", {"all_gather_inputs", 0, false, false}).read);
  EXPECT_FALSE(use("fsdp::all_gather_copy_in", {"all_gather_output", 1, false, false}).read);
  EXPECT_TRUE(use("fsdp::all_gather_copy_in", {"all_gather_output", 1, false, false}).written);
  EXPECT_FALSE(use("aten::randn_like", {"self", 0, false, false}).read);
}

TEST(Ids, ARowThatIsNotThereIsAFailedCheckAndNotMemoryOfSomebodyElse) {
  SnapshotDoc doc;
  doc.ops.resize(2);
  EXPECT_EQ(&get(doc, OpId{1}), &doc.ops[1]);
  EXPECT_THROW((void)get(doc, OpId{2}), CheckFailed);
  EXPECT_THROW((void)get(doc, OpId{}), CheckFailed);
  EXPECT_EQ(find_row(doc, OpId{2}), nullptr);
  std::vector<std::int32_t> rows;
  for (const OpId op : ids_of<OpRow>(doc)) rows.push_back(op.row());
  EXPECT_EQ(rows, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(ids_of<OpRow>(doc).size(), 2u);
  EXPECT_TRUE(ids_of<TensorRow>(doc).empty());
}

}  // namespace
}  // namespace nanquest::testing
