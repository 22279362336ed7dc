// The lines of numbers that a run writes, and its remaining time.
#include <cmath>

#include "tests/trainer/helpers.h"
#include "trainer/metrics/metrics_log.h"
#include "trainer/metrics/remaining_time.h"

namespace nanquest::trainer {
namespace {

using Form = MetricsLog::Form;
using test::Folder;
using test::read_file;

TEST(MetricsLog, LeavesOutWhatIsNotKnown) {
  const Folder folder;
  const std::string path = folder / "m.jsonl";
  auto log = MetricsLog::open(path, Form::jsonl, 0);
  ASSERT_TRUE(log) << log.error().text();
  ASSERT_TRUE(log->write(0, {{"loss", 2.5}, {"loss_scale", kUnknown}, {"lr", 1e-8}}));
  ASSERT_TRUE(log->write(1, {{"loss", INFINITY}, {"zero", 0.0}}));
  EXPECT_EQ(read_file(path), "{\"step\":0,\"loss\":2.5,\"lr\":1e-08}\n{\"step\":1,\"zero\":0}\n");
}

TEST(MetricsLog, GoesOnBehindTheStepAndWithoutWhatIsNotWhole) {
  const Folder folder;
  const std::string path = folder / "m.jsonl";
  const std::string first = "{\"step\":0,\"a\":1}\n", odd = "what a person wrote\n",
                    second = "{\"step\":5,\"a\":2}\n";
  test::write_file(path, first + odd + second + "{\"step\":7,\"a\":3}\n{\"step\":8,\"a");
  {
    auto log = MetricsLog::open(path, Form::jsonl, 7);
    ASSERT_TRUE(log);
    EXPECT_EQ(log->cut_lines(), 2);
    EXPECT_EQ(read_file(path), first + odd + second);
    ASSERT_TRUE(log->write(7, {{"a", 4}}));
    EXPECT_EQ(read_file(path), first + odd + second + "{\"step\":7,\"a\":4}\n");
    ASSERT_TRUE(log->cut(1));  // as a rollback does
    ASSERT_TRUE(log->write(1, {}));
  }
  EXPECT_EQ(read_file(path), first + odd + "{\"step\":1}\n");
}

TEST(MetricsLog, ACsvKeepsTheColumnsThatItBeganWith) {
  const Folder folder;
  const std::string path = folder / "m.csv";
  ASSERT_TRUE(MetricsLog::open(path, Form::csv, 0, {"loss", "lr"})->write(0, {{"lr", 0.5}, {"other", 1}}));
  ASSERT_TRUE(MetricsLog::open(path, Form::csv, 1, {"lr", "other"})->write(1, {{"loss", 2}, {"other", 1}}));
  EXPECT_EQ(read_file(path), "step,loss,lr\n0,,0.5\n1,2,\n");
  EXPECT_EQ(MetricsLog::open(path, Form::csv, 1, {"loss"})->cut_lines(), 1);
  EXPECT_EQ(read_file(path), "step,loss,lr\n0,,0.5\n");
  test::write_file(path, "shopping list\n");
  EXPECT_EQ(MetricsLog::open(path, Form::csv, 1, {"loss"}).error().code, ErrorCode::bad_file);
}

TEST(MetricsLog, AFullDiskAndAMissingFolderAreNamed) {
  const Folder folder;
  const std::string nowhere = folder / "no/such/m.jsonl";
  const auto missing = MetricsLog::open(nowhere, Form::jsonl, 0);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::io);
  EXPECT_NE(missing.error().message.find(nowhere), std::string::npos);
  auto full = MetricsLog::open("/dev/full", Form::jsonl, 0);
  ASSERT_TRUE(full) << full.error().text();
  EXPECT_FALSE(full->write(0, {}));
}

TEST(RemainingTime, GoesByTheLastHundredSteps) {
  RemainingTime time;
  EXPECT_FALSE(time.left(10));
  time.add(0);
  EXPECT_FALSE(time.left(10)) << "one step says nothing of how long one takes";
  time.add(50);  // the first was slow
  EXPECT_DOUBLE_EQ(*time.left(10), 500);
  for (int i = 1; i <= 99; ++i) time.add(50 + 2 * i);
  EXPECT_DOUBLE_EQ(*time.left(10), 10 * (50 + 2 * 99) / 100.0);
  time.add(50 + 2 * 100);
  EXPECT_DOUBLE_EQ(*time.left(10), 20) << "the slow one is forgotten";
}

TEST(RemainingTime, IsReadByPeople) {
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(192), "3:12");
  EXPECT_EQ(duration_text(3725), "1:02:05");
  EXPECT_EQ(duration_text(2 * 86400 + 3 * 3600), "2d 03:00:00");
}

}  // namespace
}  // namespace nanquest::trainer
