// Following a series: only appended rows are read; a replaced file is distinguished from one that grew.
#include "probe/snapshot/series_follow.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "probe/snapshot/series.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::TempDir;

const std::vector<SeriesTable> kFollowTables = {{"scalars", {"step", "loss"}, {}}, {"grad_norm", {"fc"}, {}}};

/// Steps [first, last); every second norm is NaN. `seed` changes the losses.
void append(SeriesWriter& writer, int first, int last, double seed = 0) {
  for (int i = first; i < last; ++i) {
    const double scalars[] = {static_cast<double>(i), seed + i * 0.25};
    const double norm[] = {i % 2 == 0 ? std::nan("") : i * 0.5};
    ASSERT_TRUE(writer.append({scalars, norm}));
  }
  ASSERT_TRUE(writer.flush());
}

Result<SeriesWriter> write(const std::string& path, int rows, double seed = 0) {
  Result<SeriesWriter> writer = SeriesWriter::create(path, kFollowTables);
  if (writer) append(*writer, 0, rows, seed);
  return writer;
}

std::vector<double> steps(const SeriesNews& news) {
  std::vector<double> out;
  for (std::size_t i = 0; i < news.tables.at(0).rows(); ++i) out.push_back(news.tables[0].values[2 * i]);
  return out;
}

/// Appends the rows of `more` to `whole`.
void extend(std::vector<SeriesTable>& whole, const std::vector<SeriesTable>& more) {
  for (std::size_t t = 0; t < whole.size(); ++t)
    whole[t].values.insert(whole[t].values.end(), more[t].values.begin(), more[t].values.end());
}

TEST(SeriesFollow, TheEndIsThatOfTheWholeSeries) {
  TempDir dir;
  Result<SeriesWriter> writer = write(dir / "s.h5", 9000);
  ASSERT_TRUE(writer) << writer.error().text();
  for (const std::size_t rows : {1u, 5u, 20000u}) {
    const Result<std::vector<SeriesTable>> end = read_series_end(dir / "s.h5", rows);
    ASSERT_TRUE(end) << end.error().text();
    const std::size_t held = std::min<std::size_t>(rows, 9000);
    ASSERT_EQ(end->at(0).rows(), held);
    ASSERT_EQ(end->at(1).rows(), held);
    EXPECT_EQ(end->at(0).values[0], static_cast<double>(9000 - held)) << "the first step of them";
  }
}

TEST(SeriesFollow, AppendedRowsAloneAreRead) {
  TempDir dir;
  Result<SeriesWriter> writer = write(dir / "s.h5", 9000);  // more than a chunk
  ASSERT_TRUE(writer) << writer.error().text();
  SeriesPlace place;
  Result<SeriesNews> all = read_series_on(dir / "s.h5", place);
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_FALSE(all->appended);
  ASSERT_EQ(all->tables[0].rows(), 9000u);
  std::vector<SeriesTable> whole = all->tables;
  for (int rows = 9000; rows < 9030; rows += 10) {
    append(*writer, rows, rows + 10);
    Result<SeriesNews> more = read_series_on(dir / "s.h5", place);
    ASSERT_TRUE(more && more->appended);
    EXPECT_EQ(steps(*more).size(), 10u);
    EXPECT_EQ(steps(*more).front(), rows);
    extend(whole, more->tables);
  }
  // Together the parts equal the result of the other reader.
  const Result<std::vector<SeriesTable>> read = read_series(dir / "s.h5");
  ASSERT_TRUE(read);
  for (std::size_t t = 0; t < whole.size(); ++t) {
    ASSERT_EQ(whole[t].rows(), 9030u);
    for (std::size_t i = 0; i < whole[t].values.size(); ++i)
      ASSERT_TRUE(whole[t].values[i] == (*read)[t].values[i] ||
                  (std::isnan(whole[t].values[i]) && std::isnan((*read)[t].values[i])));
  }
}

TEST(SeriesFollow, NothingNewIsNoRow) {
  TempDir dir;
  Result<SeriesWriter> writer = write(dir / "s.h5", 5);
  SeriesPlace place;
  ASSERT_TRUE(read_series_on(dir / "s.h5", place));
  Result<SeriesNews> more = read_series_on(dir / "s.h5", place);
  ASSERT_TRUE(more && more->appended);
  EXPECT_TRUE(steps(*more).empty());
  append(*writer, 5, 6);
  more = read_series_on(dir / "s.h5", place);
  ASSERT_TRUE(more && more->appended);
  EXPECT_EQ(steps(*more), (std::vector<double>{5}));
}

TEST(SeriesFollow, AnEmptySeriesStarts) {
  TempDir dir;
  Result<SeriesWriter> writer = write(dir / "s.h5", 0);
  SeriesPlace place;
  Result<SeriesNews> news = read_series_on(dir / "s.h5", place);
  ASSERT_TRUE(news);
  EXPECT_EQ(place.rows, 0u);
  append(*writer, 0, 3);
  news = read_series_on(dir / "s.h5", place);
  ASSERT_TRUE(news);
  EXPECT_EQ(steps(*news), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(place.rows, 3u);
}

/// A resumed run writes its series again: longer, shorter, of the same steps.
TEST(SeriesFollow, AReplacedFileIsReadWhole) {
  for (const int rows : {4, 10, 30}) {
    TempDir dir;
    ASSERT_TRUE(write(dir / "s.h5", 10));
    SeriesPlace place;
    ASSERT_TRUE(read_series_on(dir / "s.h5", place));
    ASSERT_TRUE(write(dir / "s.h5", rows, 100));
    const Result<SeriesNews> news = read_series_on(dir / "s.h5", place);
    ASSERT_TRUE(news) << news.error().text();
    EXPECT_FALSE(news->appended) << rows;
    EXPECT_EQ(steps(*news).size(), static_cast<std::size_t>(rows));
    EXPECT_EQ(place.rows, static_cast<std::size_t>(rows));
  }
}

/// The same file with other contents: copied over, truncated, or with other tables.
TEST(SeriesFollow, AnOverwrittenFileIsReadWhole) {
  for (const int rows : {4, 30}) {
    TempDir dir;
    ASSERT_TRUE(write(dir / "s.h5", 10));
    ASSERT_TRUE(write(dir / "other.h5", rows, 100));
    SeriesPlace place;
    ASSERT_TRUE(read_series_on(dir / "s.h5", place));
    {
      std::ifstream from(dir / "other.h5", std::ios::binary);
      std::ofstream(dir / "s.h5", std::ios::binary) << from.rdbuf();  // the inode stays
    }
    const Result<SeriesNews> news = read_series_on(dir / "s.h5", place);
    ASSERT_TRUE(news) << news.error().text();
    EXPECT_FALSE(news->appended) << rows;
    EXPECT_EQ(news->tables[0].values.at(1), 100.0);
  }
}

TEST(SeriesFollow, AFailureLeavesThePlace) {
  TempDir dir;
  ASSERT_TRUE(write(dir / "s.h5", 10));
  SeriesPlace place;
  ASSERT_TRUE(read_series_on(dir / "s.h5", place));
  std::filesystem::rename(dir / "s.h5", dir / "away.h5");
  EXPECT_EQ(read_series_on(dir / "s.h5", place).error().code, ErrorCode::bad_file);
  EXPECT_EQ(place.rows, 10u);
  std::filesystem::rename(dir / "away.h5", dir / "s.h5");
  const Result<SeriesNews> news = read_series_on(dir / "s.h5", place);
  ASSERT_TRUE(news && news->appended);
  EXPECT_TRUE(steps(*news).empty());
}

/// One read of new rows in a file with 400 times as many rows: not 400 times the cost, which reading all
/// would be.
TEST(SeriesFollow, ATickDoesNotGrowWithTheSeries) {
  TempDir dir;
  const auto cost = [&](int rows, bool follow) {
    const std::string path = dir / std::to_string(rows) + ".h5";
    if (!std::filesystem::exists(path)) {
      EXPECT_TRUE(write(path, rows));
    }
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      SeriesPlace place;
      if (follow) {
        EXPECT_TRUE(read_series_on(path, place));
      }
      const auto start = std::chrono::steady_clock::now();
      EXPECT_TRUE(read_series_on(path, place));
      best = std::min(
          best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  const double few = cost(1000, true), many = cost(400000, true), all = cost(400000, false);
  std::printf("a tick beside 1,000 rows %.2f ms, beside 400,000 rows %.2f ms; reading them all %.2f ms\n",
              few, many, all);
  EXPECT_LT(many * 2, all);
}

}  // namespace
}  // namespace nanquest
