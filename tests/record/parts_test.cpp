// The classes that a recorder consists of, each by itself: what is kept of outputs, what led to a step, twins.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "probe/record/kept_outputs.h"
#include "probe/record/leads.h"
#include "probe/record/survivors.h"
#include "probe/record/twins.h"

namespace nanquest::record {
namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 16;

TEST(KeptOutputs, HoldOneValueForAWeightThatIsGatheredTwice) {
  KeptOutputs kept;
  const at::Tensor weight = at::randn({kLarge});
  kept.keep_brought({0, 0, false}, weight, /*gathered=*/true, /*stays=*/false);
  kept.keep_brought({5, 0, false}, weight.clone(), /*gathered=*/true, /*stays=*/false);
  kept.keep_brought({6, 0, false}, weight.add(1), /*gathered=*/true, /*stays=*/false);
  kept.keep_brought({7, 0, false}, weight.clone(), /*gathered=*/false, /*stays=*/false);
  ASSERT_EQ(kept.outputs().size(), 4u);
  EXPECT_TRUE(kept.outputs()[1].value.is_alias_of(kept.outputs()[0].value));
  EXPECT_FALSE(kept.outputs()[0].value.is_alias_of(weight));
  EXPECT_TRUE(at::equal(kept.outputs()[2].value, weight.add(1)));
  EXPECT_FALSE(kept.outputs()[3].value.is_alias_of(kept.outputs()[0].value));
  EXPECT_EQ(kept.bytes(), 3 * weight.nbytes());
}

TEST(KeptOutputs, ReplaceWhatIsLentByACopyBeforeItChanges) {
  KeptOutputs kept;
  const at::Tensor lent = at::ones({8}), other = at::ones({8});
  kept.lend({3, 0, false}, lent);
  kept.lend({1, 0, false}, other);
  EXPECT_TRUE(kept.outputs()[0].value.is_alias_of(lent));
  EXPECT_EQ(kept.call_in(lent.storage().unsafeGetStorageImpl()), "");
  lent.zero_();
  EXPECT_TRUE(at::equal(kept.outputs()[0].value, at::ones({8})));
  other.mul_(2);  // nobody said so: what was there is lost
  EXPECT_NE(kept.call_in_all(), "");
  ASSERT_EQ(kept.outputs().size(), 1u);
  EXPECT_EQ(kept.outputs()[0].place.op, 3u);
}

std::vector<std::int64_t> numbers(const std::vector<const TwinBatch*>& twins) {
  std::vector<std::int64_t> found;
  for (const TwinBatch* twin : twins) found.push_back(twin->step());
  return found;
}

TEST(Twins, AreTheLastTwoHealthySteps) {
  Twins twins;
  Step steps[4];
  for (int i = 0; i < 4; ++i) {
    steps[i].number = i;
    twins.keep(steps[i], 10 + i, {});
  }
  twins.keep(steps[3], 23, {});  // the same step, further on: the one before it stays
  EXPECT_EQ(numbers(twins.before(4)), (std::vector<std::int64_t>{23, 12}));
  EXPECT_EQ(numbers(twins.before(3)), (std::vector<std::int64_t>{12}));
  twins.not_healthy(3);
  EXPECT_EQ(numbers(twins.before(4)), (std::vector<std::int64_t>{12}));
}

TEST(Leads, AreTheLastStretchOrTheStepBefore) {
  Leads leads;
  Step before;
  before.usable = true;
  leads.goes_on(before);
  EXPECT_FALSE(leads.step_begins());
  EXPECT_EQ(leads.led(), &before);
  EXPECT_FALSE(leads.drop({&before}));
  EXPECT_TRUE(before.usable) << "a kept step was emptied";
  EXPECT_EQ(leads.led(), nullptr);
  leads.goes_on(before);
  EXPECT_FALSE(leads.drop({}));
  EXPECT_FALSE(before.usable);

  Step* const stretch = leads.begin(7);
  ASSERT_NE(stretch, nullptr);
  EXPECT_TRUE(leads.running());
  EXPECT_TRUE(stretch->usable);
  EXPECT_TRUE(leads.step_begins());
  EXPECT_EQ(leads.led(), stretch);
  EXPECT_FALSE(leads.drop({}));
  EXPECT_FALSE(stretch->usable);
}

TEST(Leads, RestAfterAStretchThatWasTooLong) {
  Leads leads;
  Step* const stretch = leads.begin(1);
  stretch->ops.resize(kMostLeadOps - 1);
  EXPECT_FALSE(leads.too_long());
  stretch->ops.resize(kMostLeadOps);
  EXPECT_TRUE(leads.too_long());
  leads.rest();
  EXPECT_TRUE(leads.drop({}));
  for (int update = 1; update < kNoLeadsAfter; ++update) EXPECT_EQ(leads.begin(update), nullptr) << update;
  EXPECT_NE(leads.begin(kNoLeadsAfter), nullptr);
}

TEST(Survivors, TellTheLastValueThatIsNotFinite) {
  const at::Tensor first = at::tensor({1.f, INFINITY}), low = at::tensor({-INFINITY, 2.f}),
                   small = at::tensor({1.f, 3.f}).to(at::kFloat8_e4m3fn);
  EXPECT_EQ(last_non_finite({{first, 1, false}, {low, 2, false}, {small, 3, false}}).item<float>(), INFINITY);
  EXPECT_FALSE(last_non_finite({{low, 2, false}, {small, 3, false}}).defined()) << "-Inf is often meant";
}

}  // namespace
}  // namespace nanquest::record
