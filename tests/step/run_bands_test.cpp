// A band belongs to what is trained: another model in the same process is judged by its own.
#include "probe/step/run_bands.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/step/unseen_series.h"

namespace nanquest {
namespace {

using testing::Draw;

class Models {
 public:
  BandNews step(std::uint64_t model, double level) {
    return bands_.judge(model, {.step = step_++,
                                .loss = level * std::exp(draw_.normal(0.03)),
                                .norm = level * std::exp(draw_.normal(0.1)),
                                .rate = 1e-3});
  }

 private:
  Draw draw_{3};
  RunBands bands_;
  std::int64_t step_ = 0;
};

TEST(RunBands, AnotherModelHasNoSpikeAtItsFirstStep) {
  Models models;
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(models.step(1, 2).outside());
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(models.step(2, 40).outside()) << i;
  EXPECT_EQ(models.step(2, 400).kind, BandNews::spike);
}

TEST(RunBands, TwoThatTakeTurnsKeepTheirOwn) {
  Models models;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(models.step(1, 2).outside()) << i;
    EXPECT_FALSE(models.step(2, 40).outside()) << i;
  }
  EXPECT_EQ(models.step(1, 40).kind, BandNews::spike) << "usual for the other";
  EXPECT_FALSE(models.step(2, 40).outside());
}

TEST(RunBands, OneThatWasNotTrainedForLongLearnsAnew) {
  Models models;
  for (int i = 0; i < 100; ++i) (void)models.step(1, 2);
  for (std::uint64_t other = 2; other < 2 + RunBands::kMost; ++other) (void)models.step(other, 2);
  EXPECT_FALSE(models.step(1, 40).outside());
}

}  // namespace
}  // namespace nanquest
