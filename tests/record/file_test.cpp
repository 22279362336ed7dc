#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "probe/snapshot/reader.h"
#include "probe/trace/culprit.h"
#include "tests/record/programs.h"

namespace nanquest {
namespace {

using testing::TinyNet;

std::filesystem::path scratch(const char* name) {
  const auto dir = std::filesystem::temp_directory_path() / ("nanquest_capture_test_" + std::string(name));
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

TEST(SnapshotFile, ARecordingComesBackWhole) {
  TinyNet net;
  net.x.select(0, 0).fill_(testing::kInf);
  const Recording rec = record_step(net.state(), [&] { return net.step(); });
  const auto path = (scratch("whole") / "step-00000007.r0.h5").string();
  const Status written = write_snapshot(rec, path);
  ASSERT_TRUE(written.ok()) << written.error().text();

  const auto reader = SnapshotReader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.error().text();
  const SnapshotDoc& doc = reader->doc();
  EXPECT_EQ(doc.step, 7);
  ASSERT_EQ(doc.ops.size(), rec.doc.ops.size());
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    EXPECT_EQ(doc.ops[i].name, rec.doc.ops[i].name);
    EXPECT_EQ(doc.ops[i].node, rec.doc.ops[i].node);
    EXPECT_EQ(doc.ops[i].flags, rec.doc.ops[i].flags);
    EXPECT_EQ(doc.ops[i].forward_op, rec.doc.ops[i].forward_op);
  }
  EXPECT_EQ(doc.culprit.op, rec.doc.culprit.op);
  EXPECT_EQ(doc.culprit.origin, "input");
  for (const auto& [name, tensor] : rec.data) {
    const auto back = reader->read_tensor(name);
    ASSERT_TRUE(back.ok()) << back.error().text();
    ASSERT_EQ(back->bytes.size(), static_cast<std::size_t>(tensor.numel()) * tensor.element_size()) << name;
    if (!back->bytes.empty()) {
      EXPECT_EQ(std::memcmp(back->bytes.data(), tensor.const_data_ptr(), back->bytes.size()), 0) << name;
    }
  }
}

TEST(SnapshotFile, TheCulpritIsFoundAgainFromTheFileAlone) {
  TinyNet net;
  net.x.select(0, 0).fill_(testing::kNaN);
  const Recording rec = record_step(net.state(), [&] { return net.step(); });
  const auto path = (scratch("again") / "s.h5").string();
  ASSERT_TRUE(write_snapshot(rec, path).ok());
  const auto reader = SnapshotReader::open(path);
  ASSERT_TRUE(reader.ok());
  SnapshotDoc doc = reader->doc();
  doc.culprit = {};
  ASSERT_TRUE(find_culprit(doc));
  EXPECT_EQ(doc.culprit.op, rec.doc.culprit.op);
  EXPECT_EQ(doc.culprit.lineage, rec.doc.culprit.lineage);
  EXPECT_EQ(describe_culprit(doc), describe_culprit(rec.doc));
}

TEST(SnapshotFile, APlaceThatCannotBeWrittenIsAnErrorThatNamesIt) {
  TinyNet net;
  const Recording rec = record_step(net.state(), [&] { return net.step(); });
  const Status written = write_snapshot(rec, "/proc/nanquest/s.h5");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::io);
  EXPECT_NE(written.error().message.find("/proc/nanquest"), std::string::npos) << written.error().text();
}

}  // namespace
}  // namespace nanquest
