// A recording that looks at outside values when it must says what one says that looks at everything at once.
#include <gtest/gtest.h>

#include <functional>

#include "tests/capture/programs.h"

namespace nanquest {
namespace {

using testing::kInf;
using testing::kNaN;
using testing::TinyNet;

/// A step of the net and an update with momentum, which writes over values that it reads.
struct Trained : TinyNet {
  at::Tensor train() {
    const at::Tensor l = step();
    const at::NoGradGuard no_grad;
    momentum.mul_(0.9).add_(w1.grad());
    w1.sub_(momentum * 0.1);
    b1.t().sub_(b1.grad(), 0.1);
    return l;
  }
  Recording record(bool lazy) {
    StepState s = state();
    s.optimizer = {{"momentum", momentum}};
    at::manual_seed(5);
    return record_step(s, [&] { return train(); }, {.lazy = lazy});
  }
  at::Tensor momentum = at::ones({16, 8});
};

/// Statistics of a row: nothing if it has none.
const StatsRow* stats_in(const SnapshotDoc& doc, std::size_t row) {
  const std::int32_t stats = doc.tensors.at(row).stats;
  return stats == kNone ? nullptr : &doc.stats.at(static_cast<std::size_t>(stats));
}

/// Records the same step both ways; `spoil` makes something bad before.
void expect_alike(const std::function<void(Trained&)>& spoil, const char* culprit, int births) {
  Trained eager_net, lazy_net;
  spoil(eager_net);
  spoil(lazy_net);
  const Recording eager = eager_net.record(false), lazy = lazy_net.record(true);
  ASSERT_EQ(lazy.doc.ops.size(), eager.doc.ops.size());
  ASSERT_EQ(lazy.doc.tensors.size(), eager.doc.tensors.size());
  for (std::size_t i = 0; i < eager.doc.tensors.size(); ++i) {
    const StatsRow *a = stats_in(lazy.doc, i), *b = stats_in(eager.doc, i);
    ASSERT_EQ(a != nullptr, b != nullptr) << "row " << i;
    if (!b) continue;
    EXPECT_EQ(a->count, b->count) << "row " << i;
    EXPECT_EQ(a->nan, b->nan) << "row " << i;
    EXPECT_EQ(a->non_finite(), b->non_finite()) << "row " << i;
    EXPECT_EQ(a->zero, b->zero) << "row " << i;
    EXPECT_EQ(a->first_bad, b->first_bad) << "row " << i;
    EXPECT_EQ(a->amax, b->amax) << "row " << i;
  }
  int found = 0;
  for (std::size_t i = 0; i < eager.doc.ops.size(); ++i) {
    EXPECT_EQ(lazy.doc.ops[i].flags, eager.doc.ops[i].flags) << "op " << i << " " << eager.doc.ops[i].name;
    found += (lazy.doc.ops[i].flags & kOpBirth) != 0;
  }
  EXPECT_EQ(found, births);
  EXPECT_EQ(lazy.doc.culprit.op, eager.doc.culprit.op);
  EXPECT_EQ(lazy.doc.culprit.origin, eager.doc.culprit.origin);
  EXPECT_EQ(lazy.doc.culprit.tensor_name, eager.doc.culprit.tensor_name);
  EXPECT_EQ(lazy.doc.culprit.tensor_name, culprit);
}

TEST(Lazy, NothingBad) {
  expect_alike([](Trained&) {}, "", 0);
}

TEST(Lazy, ABadParameterIsNoBirthWhereItIsRead) {
  expect_alike([](Trained& net) { net.w1.data()[3][2] = kNaN; }, "hidden.weight", 0);
}

TEST(Lazy, ABadInputIsNoBirthWhereItIsRead) {
  expect_alike([](Trained& net) { net.x[2][1] = kInf; }, "x", 0);
}

TEST(Lazy, ABadStateThatIsOverwrittenAtOnceIsNoBirth) {
  // Neither loss nor gradients see it: no culprit of theirs.
  expect_alike([](Trained& net) { net.momentum[1][1] = kNaN; }, "", 0);
}

TEST(Lazy, WhatFiniteOutsideValuesOverflowIntoIsABirth) {
  expect_alike(
      [](Trained& net) {
        net.w1.data().fill_(1e38F);
        net.x.fill_(1e38F);
      },
      "", 1);
}

}  // namespace
}  // namespace nanquest
