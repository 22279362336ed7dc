// Golden files open for ever. Never regenerate one to make this pass: mend the reader.
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

TEST(Golden, Snapshot1_0OpensAndIsUnchanged) {
  const std::string path = std::string(NANQUEST_GOLDEN_DIR) + "/snapshot-1.0.h5";
  EXPECT_LT(std::filesystem::file_size(path), 200'000u);
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ(reader->format_major(), 1);
  EXPECT_EQ(reader->format_minor(), 0);
  testing::expect_same_doc(reader->doc(), testing::rich_doc());
  for (const auto& [name, tensor] : testing::rich_tensors()) {
    Result<TensorData> got = reader->read_tensor(name);
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(got->dtype, tensor.dtype) << name;
    EXPECT_EQ(got->shape, tensor.shape) << name;
    EXPECT_EQ(got->bytes, tensor.bytes) << name;
  }
}

}  // namespace
}  // namespace nanquest
