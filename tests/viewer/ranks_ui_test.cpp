// The grid of ranks as it is drawn and clicked.
#include <gtest/gtest.h>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class RanksUi : public testing::Story {
 protected:
  void write(std::int32_t world) {
    testing::write_run(dir());
    testing::write_ranks(dir(), world);
  }
};

TEST_F(RanksUi, ARankWithAFileIsOpenedByAClick) {
  write(16);
  Session session = open(dir());
  Driver driver(session, Panel::ranks);
  driver.frame(4);
  for (int rank = 0; rank < 16; ++rank) EXPECT_TRUE(driver.sees("rank " + std::to_string(rank)));
  EXPECT_GT(driver.area(mark_colour(Mark::nan)), 40) << "the first stands out";
  ASSERT_EQ(session.entry()->files.rank, 0);
  ASSERT_TRUE(driver.click("rank 5"));
  EXPECT_EQ(session.entry()->files.rank, 0) << "it has no file to open";
  ASSERT_TRUE(driver.click("rank 3"));
  driver.frame(3);
  EXPECT_EQ(session.entry()->files.rank, 3);
  ASSERT_TRUE(driver.click("0"));  // of the table
  driver.frame(3);
  EXPECT_EQ(session.entry()->files.rank, 0);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(RanksUi, ThousandsOfRanksAreDrawnAsFarAsTheyAreSeen) {
  write(3000);
  Session session = open(dir());
  Driver driver(session, Panel::ranks, 900, 600);
  driver.frame(4);
  EXPECT_TRUE(driver.sees("rank 0"));
  EXPECT_FALSE(driver.sees("rank 2999"));
  EXPECT_LT(driver.vertices(), 60000);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

}  // namespace
}  // namespace nanquest::viewer
