// The graph of a compiled region is run as it was told, and what doesn't fit is an error, never a crash.
#include "replay/lab/region_graph.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace nanquest {
namespace {

/// A graph with these nodes and outputs, called with one tensor and one size.
std::string graph_of(const std::string& nodes, const std::string& outputs) {
  return R"({"inputs":["tensor","int"],"modules":[["blocks.0","Linear"]],"stacks":[["model.py:3 forward"]],"nodes":[)" +
         nodes + R"(],"outputs":)" + outputs + R"(,"draws":false})";
}

std::vector<at::Tensor> run(const std::string& text, const at::Tensor& x, std::int64_t size = 2) {
  const auto graph = RegionGraph::parse(text);
  EXPECT_TRUE(graph) << graph.error().message;
  return graph->run({x}, {size}, [](const RegionNode&) {});
}

TEST(RegionGraph, NodesReadInputsSizesAndEachOther) {
  const at::Tensor x = at::arange(6, at::kFloat);
  const auto outputs = run(graph_of(R"({"op":"sizes::floordiv","arguments":[6,{"value":1}]},
    {"op":"aten::view","overload":"","arguments":[{"value":0},[{"value":1},{"value":2}]]},
    {"op":"aten::sum","overload":"dim_IntList","arguments":[{"value":3},[0],true,{"dtype":"float64"}]},
    {"op":"aten::sub","overload":"Tensor","arguments":[1,{"value":4},2]})",
                                    R"([{"value":5},null,{"value":1}])"),
                           x);
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(at::equal(outputs[0], at::tensor({-5.0, -9.0, -13.0}, at::kDouble).view({1, 3})));
  EXPECT_FALSE(outputs[1].defined());
  EXPECT_FALSE(outputs[2].defined());  // a number
}

TEST(RegionGraph, OneOfSeveralResultsConstantsAndPlaces) {
  const std::string text = graph_of(
      R"({"op":"constant","arguments":[{"tensor":{"dtype":"float16","device":"cpu","shape":[],"values":[{"number":"-inf"}]}}]},
    {"op":"aten::sort","overload":"","arguments":[{"value":0},0,true],"module":0,"stack":0,"derivative":true},
    {"op":"aten::maximum","overload":"","arguments":[{"value":3,"item":0},{"value":2}]})",
      R"([{"value":4},{"value":3,"item":1},{"value":2}])");
  const auto outputs = run(text, at::tensor({1.0F, 3.0F, 2.0F}));
  EXPECT_TRUE(at::equal(outputs[0], at::tensor({3.0F, 2.0F, 1.0F})));
  EXPECT_TRUE(at::equal(outputs[1], at::tensor({1, 2, 0}, at::kLong)));
  EXPECT_EQ(outputs[2].scalar_type(), at::kHalf);
  EXPECT_EQ(outputs[2].item<double>(), -INFINITY);
  const auto graph = RegionGraph::parse(text);
  EXPECT_EQ(graph->nodes()[1].module, "blocks.0");
  EXPECT_TRUE(graph->nodes()[1].derivative);
  EXPECT_FALSE(graph->nodes()[2].derivative);
  EXPECT_EQ(graph->stacks().at(static_cast<std::size_t>(graph->nodes()[1].stack)),
            std::vector<std::string>{"model.py:3 forward"});
}

TEST(RegionGraph, MemoryMayLieOtherwiseThanTheGraphWasTracedWith) {
  const at::Tensor x = at::arange(6, at::kFloat).view({3, 2}).t();
  const auto outputs = run(
      graph_of(R"({"op":"aten::view","overload":"","arguments":[{"value":0},[6]]})", R"([{"value":2}])"), x);
  EXPECT_TRUE(at::equal(outputs[0], at::tensor({0.0F, 2.0F, 4.0F, 1.0F, 3.0F, 5.0F})));
}

TEST(RegionGraph, WritesReachTheInputAsTheyDidInTheRegion) {
  const at::Tensor x = at::zeros({3});
  (void)run(
      graph_of(R"({"op":"aten::copy_","overload":"","arguments":[{"value":0},{"value":1},false]})", "[]"), x,
      7);
  EXPECT_TRUE(at::equal(x, at::full({3}, 7.0F)));
}

/// The compiler's own pooling against LibTorch's, whose indices its places in windows stand for.
TEST(RegionGraph, MaximaOfWindowsAndTheirPlaces) {
  at::manual_seed(1);
  for (const std::int64_t axes : {2, 3}) {
    const at::Tensor x = at::randn(axes == 2 ? at::IntArrayRef{2, 3, 7, 9} : at::IntArrayRef{2, 3, 7, 9, 5});
    const std::string kernel = axes == 2 ? "[3,2]" : "[3,2,2]", stride = axes == 2 ? "[2,1]" : "[2,1,2]",
                      padding = axes == 2 ? "[1,0]" : "[1,0,1]", dilation = axes == 2 ? "[2,1]" : "[2,1,1]",
                      input = axes == 2 ? "[7,9]" : "[7,9,5]";
    const std::string window = stride + "," + padding + "," + dilation;
    const auto outputs = run(
        graph_of(
            R"({"op":"prims::_low_memory_max_pool_with_offsets","overload":"","arguments":[{"value":0},)" +
                kernel + "," + window + R"(,true]},
      {"op":"prims::_low_memory_max_pool_offsets_to_indices","overload":"","arguments":[{"value":2,"item":1},)" +
                kernel + "," + input + "," + window + R"(]})",
            R"([{"value":2,"item":0},{"value":2,"item":1},{"value":3}])"),
        x);
    const auto [maxima, indices] =
        axes == 2 ? at::max_pool2d_with_indices(x, {3, 2}, {2, 1}, {1, 0}, {2, 1}, true)
                  : at::max_pool3d_with_indices(x, {3, 2, 2}, {2, 1, 2}, {1, 0, 1}, {2, 1, 1}, true);
    EXPECT_TRUE(at::equal(outputs[0], maxima));
    EXPECT_EQ(outputs[1].scalar_type(), at::kChar);
    EXPECT_TRUE(at::equal(outputs[2], indices));
  }
}

TEST(RegionGraph, WhatIsNoGraphIsSaid) {
  for (const std::string text :
       {"", "{", "[]", R"({"inputs":[]})", R"({"inputs":["tensor"],"modules":[],"stacks":[],"nodes":[{"op":
    "aten::neg","arguments":[{"value":9}]}],"outputs":[],"draws":false})"}) {
    const auto graph = RegionGraph::parse(text);
    ASSERT_FALSE(graph) << text;
    EXPECT_EQ(graph.error().code, ErrorCode::bad_file) << text;
  }
  EXPECT_NE(RegionGraph::parse(R"({"refused":"it calls flex_attention, which is no operator"})")
                .error()
                .message.find("flex_attention"),
            std::string::npos);
}

TEST(RegionGraph, WhatWouldEndTheProcessIsRefused) {
  std::string deep = "0";
  for (int i = 0; i < 200; ++i) deep = "[" + deep + "]";
  for (const std::string& node : {R"({"op":"aten::neg","arguments":[)" + deep + "]}",
                                  std::string(R"({"op":"constant","arguments":[0,{"value":900000}]})"),
                                  std::string(R"({"op":"sizes::neg","arguments":[1,{"value":2}]})"),
                                  std::string(R"({"op":"aten::neg","arguments":[],"stack":7})")})
    EXPECT_FALSE(RegionGraph::parse(graph_of(node, "[]"))) << node.substr(0, 80);
}

TEST(RegionGraph, WhatDoesNotFitThrows) {
  const at::Tensor x = at::ones({2});
  for (
      const std::string node :
      {R"({"op":"aten::no_such","overload":"","arguments":[]})",
       R"({"op":"aten::neg","overload":"","arguments":[]})",
       R"({"op":"aten::neg","overload":"","arguments":[{"value":1}]},{"op":"aten::neg","overload":"","arguments":["text"]})",
       R"({"op":"aten::neg","overload":"","arguments":[{"value":0,"item":1}]})",
       R"({"op":"aten::view","overload":"","arguments":[{"value":0},[-7]]})",
       R"({"op":"sizes::mod","arguments":[1,0]})", R"({"op":"sizes::no","arguments":[1,1]})",
       R"({"op":"aten::from_file","overload":"","arguments":["/etc/passwd",null,1,null,null,null,null]})"}) {
    const auto graph = RegionGraph::parse(graph_of(node, "[]"));
    ASSERT_TRUE(graph) << node << graph.error().message;
    EXPECT_ANY_THROW(graph->run({x}, {2}, [](const RegionNode&) {})) << node;
  }
  const auto graph = RegionGraph::parse(graph_of("", "[]"));
  EXPECT_ANY_THROW(graph->run({}, {2}, [](const RegionNode&) {}));
}

}  // namespace
}  // namespace nanquest
