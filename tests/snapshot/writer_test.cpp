// The writer leaves a complete file or nothing, and says why.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "probe/snapshot/atomic_file.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::TempDir;

TEST(Writer, UncommittedOneLeavesNothing) {
  TempDir dir;
  {
    Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "a.h5");
    ASSERT_TRUE(writer);
    const std::int64_t shape[] = {4};
    ASSERT_TRUE(writer->write_tensor("batch/x", {DType::uint8, shape, "abcd"}));
    ASSERT_TRUE(writer->write_doc(testing::rich_doc()));
    EXPECT_EQ(dir.entries(), 1u);
    EXPECT_FALSE(std::filesystem::exists(dir / "a.h5"));
  }
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(Writer, EqualContentsMakeEqualFiles) {
  TempDir dir;
  ASSERT_TRUE(testing::write_rich(dir / "a.h5"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5's own time stamps count seconds
  ASSERT_TRUE(testing::write_rich(dir / "b.h5"));
  EXPECT_TRUE(*read_whole_file(dir / "a.h5") == *read_whole_file(dir / "b.h5"));
}

TEST(Writer, RefusesWhatCannotBeStored) {
  TempDir dir;
  Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "a.h5");
  ASSERT_TRUE(writer);
  const std::int64_t one[] = {1}, negative[] = {-1}, huge[] = {1LL << 62, 4},
                     nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  for (const char* path : {"", "/x", "x/", "a//b", ".", "a/../b", "parameters/@table", "@x"})
    EXPECT_FALSE(writer->write_tensor(path, {DType::uint8, one, "a"})) << path;
  EXPECT_FALSE(writer->write_tensor("x", {DType::uint8, negative, "a"}));
  EXPECT_FALSE(writer->write_tensor("x", {DType::float64, huge, "a"}));
  EXPECT_EQ(writer->write_tensor("x", {DType::uint8, nine, "a"}).error().code, ErrorCode::unsupported);
  EXPECT_FALSE(writer->write_tensor("x", {DType::uint8, one, nullptr}));
  EXPECT_TRUE(writer->write_tensor("x", {DType::uint8, one, "a"}));
  EXPECT_FALSE(writer->write_tensor("x", {DType::uint8, one, "a"}));  // twice
  EXPECT_EQ(writer->commit().error().code, ErrorCode::usage);         // no doc yet
  ASSERT_TRUE(writer->write_doc({}));
  EXPECT_FALSE(writer->write_doc({}));
  ASSERT_TRUE(writer->commit());
  EXPECT_FALSE(writer->commit());
  EXPECT_FALSE(writer->write_tensor("y", {DType::uint8, one, "a"}));
}

TEST(Writer, AnUnsoundDocIsNotWritten) {
  TempDir dir;
  Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "a.h5");
  ASSERT_TRUE(writer);
  SnapshotDoc doc = testing::rich_doc();
  doc.ops[1].module = 99;
  const Status status = writer->write_doc(doc);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("trace/ops row 1: module 99 of 2"), std::string::npos)
      << status.error().text();
}

TEST(Writer, AnUnsoundTapeIsNotWritten) {
  const std::vector<std::pair<void (*)(TapeDoc&), std::string>> damages = {
      {[](TapeDoc& tape) { tape.trace.ops[1].module = 99; }, "the tape's trace/ops row 1: module 99 of 2"},
      {[](TapeDoc& tape) { tape.steps[1].gate = 3; }, "tape/steps row 1: its gate is out of order"},
      {[](TapeDoc& tape) { tape.steps[0].end = 0; }, "tape/steps row 0: its end is out of order"},
      {[](TapeDoc& tape) { tape.steps[0].loss = 4; }, "tape/steps row 0: its loss is in no table"},
      {[](TapeDoc& tape) { tape.reads[1].op = 2; }, "tape/reads row 1: its op is out of order"}};
  for (const auto& [damage, said] : damages) {
    TempDir dir;
    Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "a.h5");
    ASSERT_TRUE(writer);
    TapeDoc tape = testing::rich_tape();
    damage(tape);
    const SnapshotDoc doc = testing::rich_doc();
    const Status status = writer->write_doc(doc, &tape);
    ASSERT_FALSE(status) << said;
    EXPECT_NE(status.error().message.find(said), std::string::npos) << status.error().text();
  }
}

TEST(Writer, ADirectoryThatCannotBeMadeIsNamed) {
  TempDir dir;
  std::ofstream(dir / "file") << "x";
  const Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "file/run/a.h5");
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::io);
  EXPECT_NE(writer.error().message.find(dir / "file"), std::string::npos);
  EXPECT_FALSE(writer.error().hint.empty());
}

TEST(Writer, AReadOnlyDirectoryIsNamed) {
  TempDir dir;
  // root may write anywhere, so the child drops its rights first.
  std::filesystem::permissions(dir.string(), std::filesystem::perms(0555));
  int out[2];
  ASSERT_EQ(::pipe(out), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(3);
    const Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "a.h5");
    if (writer) ::_exit(1);
    const std::string text = std::to_string(static_cast<int>(writer.error().code)) + writer.error().text();
    ::_exit(::write(out[1], text.data(), text.size()) > 0 ? 0 : 2);
  }
  ::close(out[1]);
  char text[4096] = {};
  ASSERT_GT(::read(out[0], text, sizeof text - 1), 0);
  ::close(out[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text[0] - '0', static_cast<int>(ErrorCode::io));
  EXPECT_NE(std::string(text).find(dir / "a.h5"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("Permission denied"), std::string::npos) << text;
}

}  // namespace
}  // namespace nanquest
