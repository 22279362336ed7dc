// Values that a step reads from outside are scanned only when needed; the findings are the same.
#include <gtest/gtest.h>

#include <functional>

#include "tests/record/programs.h"

namespace nanquest {
namespace {

using testing::kInf;
using testing::kNaN;
using testing::TinyNet;

/// A step of the net and an update with momentum, which overwrites values that it reads.
struct Trained : TinyNet {
  at::Tensor train() {
    const at::Tensor l = step();
    const at::NoGradGuard no_grad;
    momentum.mul_(0.9).add_(w1.grad());
    w1.sub_(momentum * 0.1);
    b1.t().sub_(b1.grad(), 0.1);
    return l;
  }
  Recording record() {
    StepState s = state();
    s.optimizer = {{"momentum", momentum}};
    at::manual_seed(5);
    return record_step(s, [&] { return train(); });
  }
  at::Tensor momentum = at::ones({16, 8});
};

/// Number of non-finite elements of the named argument when an op first read it.
std::uint64_t bad_in_first_read(const Recording& recording, const std::string& name) {
  for (const TensorRow& row : recording.doc.tensors)
    if (row.slot != kNone && recording.doc.slots[static_cast<std::size_t>(row.slot)].name == name) {
      EXPECT_NE(row.stats, kNone) << name;
      return row.stats == kNone ? 0 : recording.doc.stats[static_cast<std::size_t>(row.stats)].non_finite();
    }
  ADD_FAILURE() << name << " was not read";
  return 0;
}

/// `spoil` makes a value bad before the step.
void expect_found(const std::function<void(Trained&)>& spoil, const std::string& culprit, int births) {
  Trained net;
  spoil(net);
  const auto bad = [](const at::Tensor& t) {
    return static_cast<std::uint64_t>(t.isfinite().logical_not().sum().item<std::int64_t>());
  };
  const std::uint64_t weight = bad(net.w1.detach()), input = bad(net.x), momentum = bad(net.momentum);
  const Recording recording = net.record();
  EXPECT_EQ(bad_in_first_read(recording, "hidden.weight"), weight);
  EXPECT_EQ(bad_in_first_read(recording, "x"), input);
  EXPECT_EQ(bad_in_first_read(recording, "momentum"), momentum);
  int found = 0;
  for (const OpRow& op : recording.doc.ops) found += (op.flags & kOpBirth) != 0;
  EXPECT_EQ(found, births);
  EXPECT_EQ(recording.doc.culprit.tensor_name, culprit);
}

TEST(Outside, NothingBad) {
  expect_found([](Trained&) {}, "", 0);
}

TEST(Outside, ABadParameterIsNoBirthWhereItIsRead) {
  expect_found([](Trained& net) { net.w1.data()[3][2] = kNaN; }, "hidden.weight", 0);
}

TEST(Outside, ABadInputIsNoBirthWhereItIsRead) {
  expect_found([](Trained& net) { net.x[2][1] = kInf; }, "x", 0);
}

TEST(Outside, ABadStateThatIsOverwrittenAtOnceIsNoBirth) {
  // Loss and gradients stay finite, but the weights become bad.
  expect_found([](Trained& net) { net.momentum[1][1] = kNaN; }, "momentum", 0);
}

TEST(Outside, WhatFiniteOutsideValuesOverflowIntoIsABirth) {
  expect_found(
      [](Trained& net) {
        net.w1.data().fill_(1e38F);
        net.x.fill_(1e38F);
      },
      "", 1);
}

}  // namespace
}  // namespace nanquest
