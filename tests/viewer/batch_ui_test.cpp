// The batch as it is drawn: choosing samples, marks, links to it and from it.
#include <gtest/gtest.h>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/panels/batch/view.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class BatchUi : public testing::Story {
 protected:
  void SetUp() override {
    testing::write_run(dir(), {.poisoned = true});
    session_.emplace(open(dir()));
  }
  Session& session() { return *session_; }
  static BatchPanel& batch_of(Driver& driver) {
    return static_cast<BatchPanel&>(driver.ui().view(Panel::batch));
  }
  static void run(Driver& driver, const std::string& name) {
    for (const Action& action : driver.ui().actions())
      if (action.name == name) return action.run(), driver.frame(3);
    ADD_FAILURE() << "no action " << name;
  }
  std::optional<Session> session_;
};

TEST_F(BatchUi, HoldsTheFactsOfText) {
  Driver driver(session(), Panel::batch);
  driver.frame(4);
  const BatchPage& drawn = batch_of(driver).page;
  const PanelPage page = info_of(Panel::batch).page(session(), Extent::whole);
  EXPECT_EQ(drawn.headline, page.headline);
  ASSERT_EQ(page.tables.size(), 2u);
  ASSERT_EQ(drawn.samples.size(), page.tables[1].rows.size());
  for (std::size_t i = 0; i < drawn.samples.size(); ++i) {
    const SampleWords& s = drawn.samples[i];
    EXPECT_EQ(page.tables[1].rows[i].cells,
              (std::vector<std::string>{std::to_string(s.number), s.id, s.blamed ? "to blame" : "",
                                        s.not_finite, s.holds, s.text}));
  }
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(BatchUi, NaNOfAPictureIsDrawnInItsColourAndWithItsMark) {
  Driver driver(session(), Panel::batch, 1280, 1000);
  driver.frame(4);
  EXPECT_GT(driver.coloured(mark_colour(Mark::nan)), 4 * 7) << "a cell for each of the seven pixels";
  const int with = driver.coloured(mark_colour(Mark::nan));
  testing::write_run(dir(), {.poisoned = false});
  ASSERT_TRUE(session().poll());
  driver.frame(4);
  EXPECT_LT(driver.coloured(mark_colour(Mark::nan)), with / 2);
}

TEST_F(BatchUi, AClickAndActionsChooseASample) {
  Driver driver(session(), Panel::batch);
  driver.frame(4);
  EXPECT_EQ(session().selection().sample, 3);
  ASSERT_TRUE(driver.click("1"));
  EXPECT_EQ(session().selection().sample, 1);
  run(driver, "Next sample");
  EXPECT_EQ(session().selection().sample, 2);
  run(driver, "Previous sample");
  run(driver, "Previous sample");
  run(driver, "Previous sample");
  EXPECT_EQ(session().selection().sample, 7) << "around the end";
  run(driver, "To the sample to blame");
  EXPECT_EQ(session().selection().sample, 3);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(BatchUi, TheVerdictLeadsThereAndATensorLeadsOn) {
  session().select_sample(0);
  Driver driver(session(), Panel::all, 1600, 1000);
  driver.frame(5);
  EXPECT_FALSE(Driver::shows("Batch")) << "runs are in front of it";
  ASSERT_TRUE(driver.click("sample 3"));
  driver.frame(4);
  EXPECT_EQ(session().selection().sample, 3);
  EXPECT_TRUE(Driver::shows("Batch"));
  ASSERT_TRUE(driver.click("image"));
  driver.frame(3);
  EXPECT_EQ(session().selection().tensor, "batch/image");
}

TEST_F(BatchUi, IsReadOnTheLoadersThread) {
  Loader loader;
  Driver driver(session(), Panel::batch, 1280, 800, &loader);
  driver.frame(1);
  EXPECT_EQ(session().read_batch(), nullptr);
  EXPECT_EQ(batch_of(driver).page.samples.size(), 8u) << "ids and texts are there at once";
  driver.read(loader);
  driver.frame(2);
  ASSERT_NE(session().read_batch(), nullptr);
  EXPECT_EQ(batch_of(driver).page.samples[3].not_finite, "21 NaN, 1 +Inf");
}

}  // namespace
}  // namespace nanquest::viewer
