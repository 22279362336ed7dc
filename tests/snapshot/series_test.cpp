// Series: flushed rows are readable while the writer runs, after it was killed, and after a resume.
#include "probe/snapshot/series.h"

#include <hdf5.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>
#include <tuple>

#include "probe/snapshot/h5.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::TempDir;

const std::vector<SeriesTable> kTables = {{"scalars", {"step", "loss", "gate"}, {}},
                                          {"grad_norm", {"blocks.0.attn", "fc.bias"}, {}}};

Status append(SeriesWriter& writer, int step) {
  const double scalars[] = {static_cast<double>(step), 1.0 / (step + 1), 0};
  const double norms[] = {step * 0.5, step % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : -1.0};
  return writer.append({scalars, norms});
}

/// All rows of steps 0 … rows-1, as `append` wrote them.
void expect_rows(const std::vector<SeriesTable>& tables, std::size_t rows) {
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].name, "scalars");
  EXPECT_EQ(tables[0].columns, kTables[0].columns);
  EXPECT_EQ(tables[1].columns, kTables[1].columns);
  ASSERT_EQ(tables[0].rows(), rows);
  ASSERT_EQ(tables[1].rows(), rows);
  for (std::size_t i = 0; i < rows; ++i) {
    ASSERT_EQ(tables[0].values[3 * i], static_cast<double>(i));
    ASSERT_EQ(tables[0].values[3 * i + 1], 1.0 / (static_cast<double>(i) + 1));
    ASSERT_EQ(tables[1].values[2 * i], static_cast<double>(i) * 0.5);
    if (i % 2 == 0)
      ASSERT_TRUE(std::isnan(tables[1].values[2 * i + 1]));
    else
      ASSERT_EQ(tables[1].values[2 * i + 1], -1.0);
  }
}

void write_steps(const std::string& path, int first, int count, bool resume = false, double from = 0) {
  Result<SeriesWriter> writer = SeriesWriter::create(path, kTables, resume, from);
  ASSERT_TRUE(writer) << writer.error().text();
  for (int i = first; i < first + count; ++i) ASSERT_TRUE(append(*writer, i));
}

TEST(Series, RoundTrip) {
  TempDir dir;
  const std::string path = dir / "run/series.r0.h5";
  write_steps(path, 0, 5000);
  Result<std::vector<SeriesTable>> got = read_series(path);
  ASSERT_TRUE(got) << got.error().text();
  expect_rows(*got, 5000);
}

TEST(Series, NoRowsYet) {
  TempDir dir;
  write_steps(dir / "s.h5", 0, 0);
  Result<std::vector<SeriesTable>> got = read_series(dir / "s.h5");
  ASSERT_TRUE(got) << got.error().text();
  expect_rows(*got, 0);
}

TEST(Series, ResumeDropsRowsFromThatStepOn) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  write_steps(path, 0, 100);
  write_steps(path, 60, 20, true, 60);
  Result<std::vector<SeriesTable>> got = read_series(path);
  ASSERT_TRUE(got) << got.error().text();
  expect_rows(*got, 80);
  write_steps(path, 80, 5, true, 1000);  // nothing to drop
  expect_rows(*read_series(path), 85);
  write_steps(path, 0, 3, false);  // not a resume: starts again
  expect_rows(*read_series(path), 3);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.string()), {}), 1);
}

TEST(Series, ResumeAfterARollBackDropsBothTimes) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  {
    Result<SeriesWriter> writer = SeriesWriter::create(path, kTables);
    ASSERT_TRUE(writer);
    for (int step : {0, 1, 2, 3, 4, 2, 3}) ASSERT_TRUE(append(*writer, step));
  }
  { ASSERT_TRUE(SeriesWriter::create(path, kTables, true, 3)); }
  Result<std::vector<SeriesTable>> got = read_series(path);
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_EQ((*got)[0].rows(), 4u);
  ASSERT_EQ((*got)[1].rows(), 4u);
  const double want[] = {0, 1, 2, 2};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ((*got)[0].values[3 * i], want[i]);
}

TEST(Series, ResumeWithOtherColumnsIsRefused) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  write_steps(path, 0, 10);
  std::vector<SeriesTable> other = kTables;
  other[1].columns[0] = "renamed";
  Result<SeriesWriter> writer = SeriesWriter::create(path, other, true, 5);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::usage);
  expect_rows(*read_series(path), 10);
}

TEST(Series, ResumeTakesASeriesWithoutTheProbesLaterColumns) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  write_steps(path, 0, 10);
  std::vector<SeriesTable> now = kTables;
  now[0].columns = {"step", "loss", "resident", "gate"};
  ASSERT_TRUE(SeriesWriter::create(path, now, true, 5));
  const Result<std::vector<SeriesTable>> got = read_series(path);
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_EQ((*got)[0].rows(), 5u);
  ASSERT_EQ((*got)[0].columns, now[0].columns);
  EXPECT_EQ((*got)[0].values[4 * 4], 4);
  EXPECT_EQ((*got)[0].values[4 * 4 + 1], 1.0 / 5);
  EXPECT_TRUE(std::isnan((*got)[0].values[4 * 4 + 2])) << "not recorded";
  now[0].columns = {"step", "loss", "accuracy", "gate"};
  EXPECT_FALSE(SeriesWriter::create(path, now, true, 5)) << "a column of the program";
  EXPECT_FALSE(SeriesWriter::create(path, kTables, true, 5)) << "a column less";
}

TEST(Series, RowsOfTheWrongLengthAreRefused) {
  TempDir dir;
  Result<SeriesWriter> writer = SeriesWriter::create(dir / "s.h5", kTables);
  ASSERT_TRUE(writer);
  const double three[] = {1, 2, 3};
  EXPECT_FALSE(writer->append({three}));
  EXPECT_FALSE(writer->append({three, three}));
  EXPECT_FALSE(SeriesWriter::create(dir / "t.h5", {{"a/b", {"x"}, {}}}));
  EXPECT_FALSE(SeriesWriter::create(dir / "t.h5", {{"a", {}, {}}}));
  EXPECT_FALSE(SeriesWriter::create(dir / "t.h5", {{"a", {"x"}, {}}, {"a", {"x"}, {}}}));
}

/// Runs `body` in a child; returns its pid. The child signals through the pipe when it is ready.
template <class F>
pid_t child(int ready[2], F body) {
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    body(ready[1]);
    ::_exit(0);
  }
  ::close(ready[1]);
  return pid;
}

TEST(Series, SurvivesSigkillUpToTheLastFlush) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  int ready[2];
  const pid_t pid = child(ready, [&](int out) {
    Result<SeriesWriter> writer = SeriesWriter::create(path, kTables);
    if (!writer) ::_exit(1);
    for (int i = 0; i < 777; ++i)
      if (!append(*writer, i)) ::_exit(2);
    if (!writer->flush()) ::_exit(3);
    for (int i = 777; i < 790; ++i)
      if (!append(*writer, i)) ::_exit(4);  // buffered: may be lost
    if (::write(out, "r", 1) != 1) ::_exit(5);
    ::pause();
  });
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  ::close(ready[0]);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  Result<std::vector<SeriesTable>> got = read_series(path);
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_GE((*got)[0].rows(), 777u);
  expect_rows(*got, (*got)[0].rows());
  // The run continues from the checkpoint of step 700.
  write_steps(path, 700, 200, true, 700);
  expect_rows(*read_series(path), 900);
}

TEST(Series, CanBeReadWhileItIsWritten) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  int ready[2];
  const pid_t pid = child(ready, [&](int out) {
    Result<SeriesWriter> writer = SeriesWriter::create(path, kTables);
    if (!writer || ::write(out, "r", 1) != 1) ::_exit(1);
    for (int i = 0; i < 3000; ++i) {
      if (!append(*writer, i)) ::_exit(2);
      if (i % 10 == 9 && !writer->flush()) ::_exit(3);
      ::usleep(200);
    }
  });
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  ::close(ready[0]);
  std::size_t last = 0, polls = 0;
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    Result<std::vector<SeriesTable>> got = read_series(path);
    ASSERT_TRUE(got) << got.error().text();
    const std::size_t rows = (*got)[0].rows();
    ASSERT_GE(rows, last);
    expect_rows(*got, rows);
    if (::testing::Test::HasFatalFailure()) break;
    last = rows;
    ++polls;
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_GT(polls, 3u);
  expect_rows(*read_series(path), 3000);
}

TEST(Series, CanBeReadByTheProcessThatWritesIt) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  Result<SeriesWriter> writer = SeriesWriter::create(path, kTables);
  ASSERT_TRUE(writer) << writer.error().text();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(append(*writer, i));
    if (i % 100 != 99) continue;
    ASSERT_TRUE(writer->flush());
    Result<std::vector<SeriesTable>> got = read_series(path);
    ASSERT_TRUE(got) << got.error().text();
    expect_rows(*got, static_cast<std::size_t>(i) + 1);
  }
}

/// Runs `change` on the HDF5 file at `path`, opened read-write.
template <class F>
void change_file(const std::string& path, F change) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  change(file);
  ASSERT_GE(H5Fclose(file), 0);
}

TEST(Series, RowsThatAreNotWrittenYetAreLeftOut) {
  TempDir dir;
  const std::string path = dir / "s.h5";
  write_steps(path, 0, 10);
  change_file(path, [](hid_t file) {  // as seen by a reader between the growth of a table and its bytes
    for (const auto& [name, rows, columns] :
         {std::tuple{"history/scalars/values", 13, 3}, {"history/grad_norm/values", 12, 2}}) {
      const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
      ASSERT_GE(dataset, 0) << name;
      const hsize_t extent[2] = {static_cast<hsize_t>(rows), static_cast<hsize_t>(columns)};
      EXPECT_GE(H5Dset_extent(dataset, extent), 0);
      H5Dclose(dataset);
    }
  });
  Result<std::vector<SeriesTable>> got = read_series(path);
  ASSERT_TRUE(got) << got.error().text();
  expect_rows(*got, 10);
}

TEST(Series, AFileOfANewerFormatIsRefusedByItsVersion) {
  TempDir dir;
  for (const auto& [version, readable] : {std::pair{"1.9", true}, {"2.0", false}}) {
    const std::string path = dir / (std::string(version) + ".h5");
    write_steps(path, 0, 3);
    change_file(path, [version = version](hid_t file) {
      ASSERT_GE(H5Adelete(file, "format_version"), 0);
      EXPECT_TRUE(h5::set_attribute(file, "format_version", std::string_view(version)));
    });
    Result<std::vector<SeriesTable>> got = read_series(path);
    ASSERT_EQ(static_cast<bool>(got), readable) << version;
    if (readable) continue;
    EXPECT_EQ(got.error().code, ErrorCode::bad_file);
    EXPECT_NE(got.error().text().find("written in series format 2.0"), std::string::npos)
        << got.error().text();
  }
}

TEST(Series, OtherFilesAreRefused) {
  TempDir dir;
  EXPECT_EQ(read_series(dir / "missing").error().code, ErrorCode::bad_file);
  ASSERT_TRUE(testing::write_rich(dir / "snapshot.h5"));
  EXPECT_EQ(read_series(dir / "snapshot.h5").error().code, ErrorCode::bad_file);
  std::ofstream(dir / "text.h5") << "not HDF5";
  const Result<std::vector<SeriesTable>> got = read_series(dir / "text.h5");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().text().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace nanquest
