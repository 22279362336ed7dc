// Which layers the map of a large model shows.
#include "viewer/model/layer_range.h"

#include <gtest/gtest.h>

namespace nanquest::viewer {
namespace {

TEST(LayersShown, AreAllUntilSomeAreChosen) {
  LayerRange range;
  range.fit(300, 1);
  EXPECT_TRUE(range.is_all());
  range.show(10, 30);
  EXPECT_EQ(range.from(), 10);
  EXPECT_EQ(range.to(), 30);
  range.fit(300, 1);
  EXPECT_EQ(range.to(), 30) << "the next frame";
  range.fit(300, 2);
  EXPECT_TRUE(range.is_all()) << "all steps and values were asked for";
  range.show(10, 30);
  range.fit(301, 2);
  EXPECT_EQ(range.to(), 301) << "another statistic with other layers";
}

TEST(LayersShown, StayWithinTheModel) {
  LayerRange range;
  range.fit(300, 1);
  range.show(-20, 20);
  EXPECT_EQ(range.from(), 0);
  EXPECT_EQ(range.to(), 40) << "moved, not cut";
  range.show(290, 310);
  EXPECT_EQ(range.from(), 280);
  EXPECT_EQ(range.to(), 300);
  range.show(100, 100.5);
  EXPECT_EQ(range.to() - range.from(), 4) << "no deeper";
  range.show(-1000, 1000);
  EXPECT_TRUE(range.is_all());
  range.fit(2, 1);
  range.show(0.5, 1);
  EXPECT_TRUE(range.is_all());
}

TEST(LayersShown, FollowTheSelectedLayerOnce) {
  LayerRange range;
  range.fit(300, 1);
  range.show(10, 30);
  range.keep_in_sight(20);
  EXPECT_EQ(range.from(), 10) << "it is in sight";
  range.keep_in_sight(200);
  EXPECT_EQ(range.from(), 181);
  EXPECT_EQ(range.to(), 201);
  range.show(0, 20);
  range.keep_in_sight(200);
  EXPECT_EQ(range.from(), 0) << "the user has moved on since";
  range.keep_in_sight(-1);
  range.keep_in_sight(200);
  EXPECT_EQ(range.to(), 201);
  range.keep_in_sight(5);
  EXPECT_EQ(range.from(), 5);
}

}  // namespace
}  // namespace nanquest::viewer
