// What is to blame on one rank, if the path to harm leads through a collective without the other ranks'
// files.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "probe/record/record.h"
#include "replay/blame/blame.h"
#include "replay/blame/harm.h"

namespace nanquest {
namespace {

double other_rank = 1;  ///< every number that the other rank gives

at::Tensor with_other(const at::Tensor& own) {
  return own + other_rank;
}

TORCH_LIBRARY(nanquest_two_ranks, m) {
  m.def("all_reduce(Tensor input, str reduce_op, str group) -> Tensor");
  m.def("reduce_scatter_tensor(Tensor input, str reduce_op, int size, str group) -> Tensor");
  m.def("all_gather_into_tensor(Tensor input, int size, str group) -> Tensor");
  m.def("broadcast(Tensor input, int src, str group) -> Tensor");
}
TORCH_LIBRARY_IMPL(nanquest_two_ranks, CPU, m) {
  m.impl("all_reduce",
         [](const at::Tensor& own, c10::string_view, c10::string_view) { return with_other(own); });
  m.impl("reduce_scatter_tensor",
         [](const at::Tensor& own, c10::string_view, std::int64_t size, c10::string_view) {
           return with_other(own).narrow(0, 0, own.numel() / size).clone();
         });
  m.impl("all_gather_into_tensor", [](const at::Tensor& own, std::int64_t, c10::string_view) {
    return at::cat({own, at::full_like(own, other_rank)});
  });
  m.impl("broadcast", [](const at::Tensor& own, std::int64_t src, c10::string_view) {
    return src == 0 ? own.clone() : at::full_like(own, other_rank);
  });
}

at::Tensor call(const std::string& name, std::vector<c10::IValue> stack) {
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(("nanquest_two_ranks::" + name).c_str(), "")
      .callBoxed(stack);
  return stack.front().toTensor();
}

/// Rank 0 of 2 takes the logarithm of `x`, gives it to a collective, and adds up what comes back.
Blame blame_of(const std::string& collective, const at::Tensor& x, double other,
               std::vector<c10::IValue> arguments) {
  other_rank = other;
  StepState state;
  state.world_size = 2;
  state.batch = {{"x", x}};
  Recording recording = record_step(state, [&] {
    arguments.insert(arguments.begin(), at::log(x));
    return call(collective, arguments).sum();
  });
  for (OpRow& op : recording.doc.ops)
    if (op.name.starts_with("nanquest_two_ranks::")) op.name.replace(0, 18, "_c10d_functional");
  auto opened = Replayer::from_memory(recording.doc, {recording.data.begin(), recording.data.end()});
  EXPECT_TRUE(opened.ok()) << opened.error().text();
  const Replayer replayer = std::move(opened).value();
  EXPECT_TRUE(verify(replayer).bit_exact);
  Lab lab(replayer);
  const RunResult recorded = lab.run({});
  EXPECT_FALSE(recorded.loss_finite);
  EXPECT_EQ(recorded.substituted, 1);
  Blame blame = find_blame(lab, recorded);
  // What is replaced in trials is replaced nowhere else.
  EXPECT_FALSE(lab.run({}).loss_finite);
  return blame;
}

const at::Tensor kBad = at::tensor({0.f, 1.f, 2.f, 4.f}), kGood = at::tensor({3.f, 1.f, 2.f, 4.f});

void expect_log(const Blame& blame, std::size_t assumed) {
  ASSERT_EQ(blame.set.size(), 1u);
  EXPECT_EQ(blame.set.front().op.row(), 0);
  EXPECT_EQ(blame.assumed.size(), assumed);
}

TEST(OwnPart, OfASumStandsForEverybodys) {
  expect_log(blame_of("all_reduce", kBad, 1, {"sum", "0"}), 1);
  expect_log(blame_of("all_reduce", kBad, 1, {"avg", "0"}), 1);
  expect_log(blame_of("reduce_scatter_tensor", kBad, 1, {"sum", 2, "0"}), 1);
}

TEST(OwnPart, OfAGatherOrABroadcastIsKnown) {
  expect_log(blame_of("all_gather_into_tensor", kBad, 1, {2, "0"}), 0);
  expect_log(blame_of("broadcast", kBad, 1, {0, "0"}), 0);
}

/// Replacing the logarithm is not enough: only the collective's result is, in place of which nothing is
/// assumed.
void expect_collective(const Blame& blame) {
  ASSERT_EQ(blame.set.size(), 1u);
  EXPECT_EQ(blame.set.front().op.row(), 1);
  EXPECT_TRUE(blame.assumed.empty());
}

TEST(OwnPart, WhatAnotherRankGaveStaysBad) {
  // Its NaN is the collective's, beside the infinity that came from here: both must go.
  const Blame gathered = blame_of("all_gather_into_tensor", kBad, NAN, {2, "0"});
  ASSERT_EQ(gathered.set.size(), 2u);
  EXPECT_EQ(gathered.set.front().op.row(), 0);
  EXPECT_EQ(gathered.set.back().op.row(), 1);
  EXPECT_TRUE(gathered.assumed.empty());
  expect_collective(blame_of("broadcast", kBad, NAN, {1, "0"}));
  // It gave finite numbers itself: what arrived came by the collective.
  expect_collective(blame_of("all_reduce", kGood, NAN, {"sum", "0"}));
}

TEST(OwnPart, OfAGroupThatIsNotKnownIsNotGuessed) {
  expect_collective(blame_of("reduce_scatter_tensor", kBad, 1, {"sum", 4, "7"}));
}

}  // namespace
}  // namespace nanquest
