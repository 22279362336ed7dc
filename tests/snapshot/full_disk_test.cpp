// A disk that is full or fails at any point: the writer reports it and leaves no incomplete file, and the
// process, which may be a training, continues and exits normally.
#include <sys/resource.h>

#include "probe/snapshot/series.h"
#include "tests/snapshot/full_disk.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::in_child;
using testing::set_disk_space;
using testing::TempDir;

std::string in_words(const Status& status) {
  return status.ok() ? "written"
                     : std::to_string(static_cast<int>(status.error().code)) + status.error().text();
}

/// Writes a snapshot in `dir` with every size of disk; returns the number of failures.
int write_with_every_space(const TempDir& dir, bool can_reserve, int error, const std::string& words) {
  const std::string path = dir / "a.h5";
  EXPECT_TRUE(testing::write_rich(path));
  const auto whole = static_cast<long long>(std::filesystem::file_size(path));
  std::filesystem::remove(path);
  int refused = 0;
  for (long long space = 0; space < whole + 20000; space += space < 4096 ? 600 : 5003) {
    const std::string text = in_child([&] {
      set_disk_space(dir.string(), space, can_reserve, error);
      return in_words(testing::write_rich(path));
    });
    if (text == "written") {
      EXPECT_TRUE(SnapshotReader::open(path));
      std::filesystem::remove(path);
      continue;
    }
    ++refused;
    EXPECT_EQ(text[0] - '0', static_cast<int>(ErrorCode::io)) << space << ": " << text;
    EXPECT_NE(text.find(path + ": "), std::string::npos) << space << ": " << text;
    EXPECT_NE(text.find(words), std::string::npos) << space << ": " << text;
    EXPECT_EQ(dir.entries(), 0u) << space;
  }
  return refused;
}

TEST(FullDisk, ASnapshotIsNotWritten) {
  TempDir dir;
  EXPECT_GT(write_with_every_space(dir, true, ENOSPC, "No space left on device (free some space"), 20);
}

TEST(FullDisk, ABrokenDiskIsNamed) {
  TempDir dir;
  EXPECT_GT(write_with_every_space(dir, false, EIO, "Input/output error (check the disk"), 20);
}

TEST(FullDisk, ALimitOnTheSizeOfFilesDoesNotKill) {
  TempDir dir;
  const std::string path = dir / "a.h5", series = dir / "s.h5";
  ASSERT_TRUE(testing::write_rich(path));
  const rlim_t whole = std::filesystem::file_size(path);
  std::filesystem::remove(path);
  for (const rlim_t bytes :
       {rlim_t{0}, rlim_t{511}, rlim_t{512}, rlim_t{3000}, rlim_t{20000}, rlim_t{100000}, whole - 1}) {
    const auto with_limit = [&](const std::function<std::string()>& body) {
      return in_child([&] {
        const rlimit limit{bytes, bytes};
        return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 ? body() : "no limit";
      });
    };
    const std::string text = with_limit([&] { return in_words(testing::write_rich(path)); });
    EXPECT_NE(text.find("File too large (free some space"), std::string::npos) << bytes << ": " << text;
    const std::string made = with_limit([&] {
      Result<SeriesWriter> writer = SeriesWriter::create(series, {{"scalars", {"step"}, {}}});
      return writer ? "made" : writer.error().text();
    });
    EXPECT_NE(made.find("File too large (free some space"), std::string::npos) << bytes << ": " << made;
    EXPECT_EQ(dir.entries(), 0u) << bytes;
  }
}

const std::vector<SeriesTable> kDiskTables = {{"scalars", {"step", "loss"}, {}},
                                              {"norms", {"a", "b", "c"}, {}}};

/// Appends rows of steps first … last-1, flushing now and then; the first failure, or success.
Status append_steps(SeriesWriter& writer, int first, int last) {
  Status worst;
  for (int i = first; i < last; ++i) {
    const double scalars[] = {static_cast<double>(i), 0.5 * i}, norms[] = {1.0 * i, 2.0 * i, 3.0 * i};
    Status status = writer.append({scalars, norms});
    if (status && i % 50 == 49) status = writer.flush();
    if (worst && !status) worst = status;
  }
  const Status last_flush = writer.flush();
  return worst ? last_flush : worst;
}

void expect_true_rows(const std::vector<SeriesTable>& tables) {
  ASSERT_EQ(tables.size(), 2u);
  ASSERT_EQ(tables[0].rows(), tables[1].rows());
  for (std::size_t i = 0; i < tables[0].rows(); ++i) {
    ASSERT_EQ(tables[0].values[2 * i + 1], 0.5 * static_cast<double>(i));
    ASSERT_EQ(tables[1].values[3 * i + 2], 3.0 * static_cast<double>(i));
  }
}

TEST(FullDisk, ASeriesKeepsWhatItHas) {
  for (const bool can_reserve : {true, false}) {
    std::size_t most = 0;
    int refused = 0;
    // A reservation asks for some MB more than is written, so the relevant sizes are larger.
    const long long largest = can_reserve ? 3'500'000 : 900'000, step = largest / 30;
    for (long long space = 0; space < largest; space += space < 8000 ? 700 : step) {
      TempDir dir;
      const std::string path = dir / "s.h5";
      const std::string text = in_child([&] {
        set_disk_space(dir.string(), space, can_reserve);
        Result<SeriesWriter> writer = SeriesWriter::create(path, kDiskTables);
        return writer ? in_words(append_steps(*writer, 0, 10'000)) : in_words(writer.error());
      });
      if (text != "written") {
        ++refused;
        EXPECT_NE(text.find("No space left on device (free some space"), std::string::npos)
            << space << ": " << text;
      }
      if (dir.entries() == 0) continue;
      Result<std::vector<SeriesTable>> got = read_series(path);
      ASSERT_TRUE(got) << space << " " << can_reserve << ": " << got.error().text();
      expect_true_rows(*got);
      most = std::max(most, (*got)[0].rows());
    }
    EXPECT_GT(refused, 10) << can_reserve;
    EXPECT_GT(most, 1000u) << can_reserve;
  }
}

TEST(FullDisk, ASeriesGoesOnWhenThereIsRoomAgain) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  const std::string text = in_child([&]() -> std::string {
    set_disk_space(dir.string(), 2'500'000);
    Result<SeriesWriter> writer = SeriesWriter::create(path, kDiskTables);
    if (!writer) return writer.error().text();
    if (append_steps(*writer, 0, 60'000)) return "was not refused";
    set_disk_space(dir.string(), 100'000'000);
    return in_words(append_steps(*writer, 60'000, 70'000));
  });
  EXPECT_EQ(text, "written");
  Result<std::vector<SeriesTable>> got = read_series(path);
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ((*got)[0].rows(), 70'000u);
  expect_true_rows(*got);
}

}  // namespace
}  // namespace nanquest
