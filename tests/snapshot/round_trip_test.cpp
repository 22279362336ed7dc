// What is written is read back: every table field by field, every tensor bit by bit.
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::TempDir;

TEST(RoundTrip, EveryFieldOfARichDoc) {
  TempDir dir;
  const std::string path = dir / "run/incidents/step-00000131.r0.h5";
  const Status written = testing::write_rich(path);
  ASSERT_TRUE(written) << written.error().text();
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  ASSERT_TRUE(reader) << reader.error().text();
  testing::expect_same_doc(reader->doc(), testing::rich_doc());
  EXPECT_EQ(reader->format_major(), 2);
  EXPECT_EQ(reader->path(), path);
}

TEST(RoundTrip, EveryTensorBitForBit) {
  TempDir dir;
  const std::string path = dir / "a.h5";
  ASSERT_TRUE(testing::write_rich(path));
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  ASSERT_TRUE(reader) << reader.error().text();
  const auto want = testing::rich_tensors();
  for (const auto& [name, tensor] : want) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(reader->has_tensor(name));
    Result<TensorData> got = reader->read_tensor(name);
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(got->dtype, tensor.dtype);
    EXPECT_EQ(got->shape, tensor.shape);
    EXPECT_EQ(got->bytes, tensor.bytes);
  }
  Result<std::vector<TensorInfo>> list = reader->tensors();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), want.size());
  for (std::size_t i = 1; i < list->size(); ++i) EXPECT_LT((*list)[i - 1].path, (*list)[i].path);
  EXPECT_FALSE(reader->has_tensor("trace/ops/name"));
  EXPECT_FALSE(reader->has_tensor("no/such"));
  EXPECT_FALSE(reader->read_tensor("no/such"));
}

TEST(RoundTrip, ARangeOfATensor) {
  TempDir dir;
  const std::string path = dir / "a.h5";
  ASSERT_TRUE(testing::write_rich(path));
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  ASSERT_TRUE(reader) << reader.error().text();
  const std::string name = "parameters/all.float32";
  Result<TensorData> whole = reader->read_tensor(name);
  Result<TensorData> part = reader->read_range(name, 4, 6);
  ASSERT_TRUE(whole && part);
  EXPECT_EQ(part->shape, std::vector<std::int64_t>{6});
  EXPECT_EQ(std::memcmp(part->bytes.data(), whole->bytes.data() + 16, 24), 0);
  EXPECT_TRUE(reader->read_range(name, 15, 0));
  EXPECT_FALSE(reader->read_range(name, 10, 6));
  EXPECT_FALSE(reader->read_range(name, UINT64_MAX, 2));
}

TEST(RoundTrip, All65536PatternsOfHalfAndBfloat16) {
  TempDir dir;
  const std::string path = dir / "a.h5";
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  const std::int64_t shape[] = {65536};
  Result<SnapshotWriter> writer = SnapshotWriter::create(path);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write_tensor("batch/half", {DType::float16, shape, patterns.data()}));
  ASSERT_TRUE(writer->write_tensor("batch/bf16", {DType::bfloat16, shape, patterns.data()}));
  ASSERT_TRUE(writer->write_doc({}));
  ASSERT_TRUE(writer->commit());
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  ASSERT_TRUE(reader) << reader.error().text();
  for (const char* name : {"batch/half", "batch/bf16"}) {
    Result<TensorData> got = reader->read_tensor(name);
    ASSERT_TRUE(got) << got.error().text();
    ASSERT_EQ(got->bytes.size(), 131072u);
    EXPECT_EQ(std::memcmp(got->bytes.data(), patterns.data(), 131072), 0) << name;
  }
}

TEST(RoundTrip, AnEmptyDoc) {
  TempDir dir;
  Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "empty.h5");
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write_doc({}));
  ASSERT_TRUE(writer->commit());
  Result<SnapshotReader> reader = SnapshotReader::open(dir / "empty.h5");
  ASSERT_TRUE(reader) << reader.error().text();
  testing::expect_same_doc(reader->doc(), {});
}

}  // namespace
}  // namespace nanquest
