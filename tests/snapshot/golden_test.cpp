// Golden files must always open. Never regenerate one to make this pass: fix the reader.
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

/// The golden file of that name holds the rich doc of snapshot format `major`.`minor`.
void expect_golden(const std::string& name, int major, int minor, HashKind hash_kind) {
  const std::string path = std::string(NANQUEST_GOLDEN_DIR) + "/" + name;
  EXPECT_LT(std::filesystem::file_size(path), 200'000u);
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ(reader->format_major(), major);
  EXPECT_EQ(reader->format_minor(), minor);
  EXPECT_EQ(reader->doc().hash_kind, hash_kind);
  const bool has_twin = major > 2 || (major == 2 && minor >= 1);
  const bool has_regions = major > 2 || (major == 2 && minor >= 2);
  const bool has_tape = major > 2 || (major == 2 && minor >= 3);
  const bool has_clips = major > 2 || (major == 2 && minor >= 4);
  SnapshotDoc want = testing::rich_doc();
  if (!has_twin) want.twin = {};
  testing::expect_same_doc(reader->doc(), want);
  EXPECT_EQ(reader->has_tape(), has_tape);
  if (has_tape) {
    const Result<TapeDoc> tape = reader->read_tape();
    ASSERT_TRUE(tape) << tape.error().text();
    TapeDoc want_tape = testing::rich_tape();
    if (!has_clips)
      for (TapeStep& step : want_tape.steps) step.clip = step.grad_norm = 0;
    testing::expect_same_tape(*tape, want_tape);
  } else {
    EXPECT_EQ(reader->read_tape().error().code, ErrorCode::bad_file);
  }
  for (const auto& [tensor_name, tensor] : testing::rich_tensors()) {
    if (!has_twin && tensor_name.starts_with("twin/")) continue;
    if (!has_regions && tensor_name.starts_with("regions/")) continue;
    if (!has_tape && tensor_name.starts_with("tape/")) continue;
    Result<TensorData> got = reader->read_tensor(tensor_name);
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(got->dtype, tensor.dtype) << tensor_name;
    EXPECT_EQ(got->shape, tensor.shape) << tensor_name;
    EXPECT_EQ(got->bytes, tensor.bytes) << tensor_name;
  }
}

TEST(Golden, Snapshot1_0OpensAndIsUnchanged) {
  expect_golden("snapshot-1.0.h5", 1, 0, HashKind::whole);
}

// The same format as nanquest has written it since it writes HDF5 without libhdf5.
TEST(Golden, Snapshot1_0WrittenWithoutLibhdf5OpensAndIsUnchanged) {
  expect_golden("snapshot-1.0-direct.h5", 1, 0, HashKind::whole);
}

TEST(Golden, Snapshot2_0OpensAndIsUnchanged) {
  expect_golden("snapshot-2.0.h5", 2, 0, HashKind::contents);
}

TEST(Golden, Snapshot2_1OpensAndIsUnchanged) {
  expect_golden("snapshot-2.1.h5", 2, 1, HashKind::contents);
}

TEST(Golden, Snapshot2_2OpensAndIsUnchanged) {
  expect_golden("snapshot-2.2.h5", 2, 2, HashKind::contents);
}

TEST(Golden, Snapshot2_3OpensAndIsUnchanged) {
  expect_golden("snapshot-2.3.h5", 2, 3, HashKind::contents);
}

TEST(Golden, Snapshot2_4OpensAndIsUnchanged) {
  expect_golden("snapshot-2.4.h5", 2, 4, HashKind::contents);
}

// One of its tensors is in snapshot-3.0.weights.
TEST(Golden, Snapshot3_0OpensAndIsUnchanged) {
  expect_golden("snapshot-3.0.h5", 3, 0, HashKind::contents);
  const Result<SnapshotReader> reader =
      SnapshotReader::open(std::string(NANQUEST_GOLDEN_DIR) + "/snapshot-3.0.h5");
  ASSERT_TRUE(reader);
  ASSERT_EQ(reader->references().size(), 1u);
  EXPECT_EQ(reader->references()[0].path, testing::kRichReference);
}

}  // namespace
}  // namespace nanquest
