// What a device drew stays in the program's memory until something writes there; what steps overwrite is
// copied together.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "probe/observe/observer.h"
#include "probe/record/recorder.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

namespace nqdev {
namespace {

using namespace nanquest;

TEST(LentOnADevice, AMaskIsNotCopiedUntilSomebodyWritesThere) {
  heal();
  set_seed(5);
  const at::Tensor x = at::ones({64, 64}, at::TensorOptions().device("nqdev"));
  const auto asked = [] { return counted(Counter::launches) + counted(Counter::copies); };
  reset_counters();
  (void)at::native_dropout(x, 0.5, true);
  const std::int64_t alone = asked();
  Recorder recorder({.stacks = false});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  recorder.begin_step(0);
  reset_counters();
  const at::Tensor mask = std::get<1>(at::native_dropout(x, 0.5, true));
  EXPECT_EQ(asked(), alone);
  const auto& kept = recorder.current()->kept.outputs();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_TRUE(kept[0].value.is_alias_of(mask));
  const at::Tensor drawn = mask.cpu();
  mask.zero_();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_FALSE(kept[0].value.is_alias_of(mask));
  EXPECT_TRUE(at::equal(kept[0].value.cpu(), drawn));
  EXPECT_FALSE(mask.cpu().any().item<bool>());
}

/// Adds one to each, one after the other, in a step of its own; `between` comes after the first.
std::vector<at::Tensor> first_values(
    Recorder& recorder, std::int64_t number, const std::vector<at::Tensor>& all,
    const std::function<void()>& between = [] {}) {
  recorder.begin_step(number);
  reset_counters();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].add_(1);
    if (i == 0) between();
  }
  std::vector<at::Tensor> kept;
  for (const std::uint32_t slot : recorder.current()->outside)
    kept.push_back(recorder.current()->slots[slot].saved_on_device);
  return kept;
}

TEST(EarlyCopies, WhatStepsOverwriteOneByOneIsCopiedAtOnce) {
  heal();
  set_seed(5);
  std::vector<at::Tensor> all;
  for (int i = 0; i < 6; ++i)
    all.push_back(at::full({1024}, double(i), at::TensorOptions().dtype(at::kDouble).device("nqdev")));
  Recorder recorder({.stacks = false});
  auto session = ObserverSession::start(recorder);
  ASSERT_TRUE(session.ok());
  const auto expect = [&](const std::vector<at::Tensor>& kept, std::vector<double> values) {
    ASSERT_EQ(kept.size(), values.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      ASSERT_TRUE(kept[i].defined()) << i;
      EXPECT_EQ(kept[i].cpu().view(at::kDouble)[7].item<double>(), values[i]) << i;
    }
  };
  auto kept = first_values(recorder, 0, all);
  const std::int64_t one_by_one = counted(Counter::launches) + counted(Counter::copies);
  expect(kept, {0, 1, 2, 3, 4, 5});
  kept = first_values(recorder, 1, all);
  EXPECT_EQ(counted(Counter::launches) + counted(Counter::copies),
            one_by_one - 5);  // six copies have become one
  expect(kept, {1, 2, 3, 4, 5, 6});
  // Written after the early copies were made, without an op that is observed: the step reads what was
  // written.
  kept = first_values(recorder, 2, all, [&] {
    const ObserverPause pause;
    all[3].fill_(70);
  });
  expect(kept, {2, 3, 4, 70, 6, 7});
  // Written in the step before the first of them is overwritten.
  recorder.end_step(false);
  recorder.begin_step(3);
  {
    const ObserverPause pause;
    all[1].fill_(80);
  }
  for (const at::Tensor& each : all) each.add_(1);
  kept.clear();
  for (const std::uint32_t slot : recorder.current()->outside)
    kept.push_back(recorder.current()->slots[slot].saved_on_device);
  expect(kept, {3, 80, 5, 71, 7, 8});
}

}  // namespace
}  // namespace nqdev
