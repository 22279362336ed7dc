// Ops of two steps belong together by operator, module, shape and order.
#include "replay/diff/align.h"

#include <gtest/gtest.h>

namespace nanquest::diff {
namespace {

/// A step of ops that write one vector each: "aten::mul@blocks.0:8" is an op, its module, and the length.
SnapshotDoc step(const std::vector<std::string>& ops) {
  SnapshotDoc doc;
  for (const std::string& text : ops) {
    const std::size_t at = text.find('@'), colon = text.rfind(':');
    doc.modules.push_back({text.substr(at + 1, colon - at - 1), ""});
    doc.slots.emplace_back().bytes = 64;
    TensorRow row;
    row.slot = static_cast<std::int32_t>(doc.slots.size()) - 1;
    row.sizes = {std::stoll(text.substr(colon + 1))};
    row.strides = {1};
    OpRow op;
    op.name = text.substr(0, at);
    op.module = static_cast<std::int32_t>(doc.modules.size()) - 1;
    op.first_output = op.first_written = static_cast<std::int32_t>(doc.tensors.size());
    op.output_count = op.written_count = 1;
    doc.written.push_back(static_cast<std::int32_t>(doc.tensors.size()));
    doc.tensors.push_back(row);
    doc.ops.push_back(op);
  }
  return doc;
}

std::string pairs_of(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const SnapshotDoc left = step(a), right = step(b);
  const TraceGraph graph_a(left), graph_b(right);
  std::string text;
  for (const OpPair& pair : align(graph_a, graph_b).pairs)
    text += std::to_string(pair.a.row()) + "-" + std::to_string(pair.b.row()) + " ";
  return text;
}

TEST(Align, AnOpThatOnlyOneHasIsLeftOut) {
  EXPECT_EQ(pairs_of({"aten::mm@a:4", "aten::mul@a:4", "aten::add@a:4", "aten::exp@b:4"},
                     {"aten::mm@a:4", "aten::add@a:4", "aten::exp@b:4"}),
            "0-0 2-1 3-2 ");
}

TEST(Align, TheModuleDecidesBetweenEqualOps) {
  EXPECT_EQ(pairs_of({"aten::mm@a:4", "aten::mm@b:4", "aten::mm@c:4"}, {"aten::mm@b:4", "aten::mm@c:4"}),
            "1-0 2-1 ");
}

TEST(Align, WrappersDoNotChangeAModule) {
  EXPECT_EQ(pairs_of({"aten::mm@a:4", "aten::mm@b:4"}, {"aten::mm@module._orig_mod.b:4"}), "1-0 ");
  EXPECT_EQ(plain_path("module._orig_mod.blocks.0"), "blocks.0");
  EXPECT_EQ(plain_path("module"), "");
}

TEST(Align, OtherOperatorsAreNeverPartners) {
  const SnapshotDoc left = step({"aten::mm@a:4", "aten::mul@a:4"}),
                    right = step({"aten::bmm@a:4", "aten::mul@a:4"});
  const TraceGraph graph_a(left), graph_b(right);
  const Alignment alignment = align(graph_a, graph_b);
  EXPECT_EQ(alignment.only_a, std::vector<OpId>{OpId{0}});
  EXPECT_EQ(alignment.only_b, std::vector<OpId>{OpId{0}});
  EXPECT_DOUBLE_EQ(alignment.share(), 0.5);
  EXPECT_EQ(alignment.of_a[OpId{1}], OpId{1});
  EXPECT_FALSE(alignment.of_a[OpId{0}]);
}

TEST(Align, EmptyStepsAreAlike) {
  EXPECT_EQ(pairs_of({}, {"aten::mm@a:4"}), "");
  const SnapshotDoc none;
  const TraceGraph graph(none);
  EXPECT_DOUBLE_EQ(align(graph, graph).share(), 1);
}

TEST(Align, LongStepsAreMatchedNearTheDiagonal) {
  std::vector<std::string> a, b;
  for (int i = 0; i < 9000; ++i) {
    const std::string op = "aten::op" + std::to_string(i % 7) + "@m" + std::to_string(i / 50) + ":4";
    a.push_back(op);
    if (i % 100 != 50) b.push_back(op);
  }
  const SnapshotDoc left = step(a), right = step(b);
  const TraceGraph graph_a(left), graph_b(right);
  EXPECT_EQ(align(graph_a, graph_b).pairs.size(), b.size());
}

}  // namespace
}  // namespace nanquest::diff
