// The grid of ranks as it is drawn and clicked.
#include <gtest/gtest.h>

#include <filesystem>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/rank_row.h"
#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class RanksUi : public testing::Story {
 protected:
  void write(std::int32_t world) {
    const std::string snapshot = testing::write_run(dir());
    std::filesystem::copy(snapshot, incident_path(dir(), 131, 3));
    for (std::int32_t rank = 4; rank < world; ++rank) {
      const RankRow row{Standing::arrived, -1, "", 131, rank, world, 3};
      ASSERT_TRUE(write_file_atomically(rank_row_path(dir(), 131, rank), to_line(row), Durable::soon));
    }
    Manifest manifest = *read_manifest(dir());
    manifest.world_size = world;
    ASSERT_TRUE(write_manifest(dir(), manifest));
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
