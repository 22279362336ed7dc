// libhdf5 can read and change a file that was written without it. Types, attributes and contents are compared
// in round_trip_test.cpp, hostile_test.cpp and h5py_test.py.
#include "probe/snapshot/hdf5_encode.h"
#include "tests/snapshot/forge.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::TempDir;

TEST(Hdf5File, Lookup3GivesItsAuthorsNumbers) {
  EXPECT_EQ(hdf5::lookup3(""), 0xdeadbeefU);
  EXPECT_EQ(hdf5::lookup3("Four score and seven years ago"), 0x17770551U);
}

// The library itself moves the links of a group with more than 8 to a tree; here they stay in the header.
TEST(Hdf5File, AGroupHoldsManyTensors) {
  constexpr std::int64_t kMany = 2'000;
  TempDir dir;
  const std::string path = dir / "a.h5";
  Result<SnapshotWriter> writer = SnapshotWriter::create(path);
  ASSERT_TRUE(writer);
  for (std::int64_t i = 0; i < kMany; ++i)
    ASSERT_TRUE(writer->write_tensor("parameters/p" + std::to_string(i), {DType::int64, {}, &i}));
  ASSERT_TRUE(writer->write_doc({}));
  ASSERT_TRUE(writer->commit());
  const auto expect_all = [&] {
    Result<SnapshotReader> reader = SnapshotReader::open(path);
    ASSERT_TRUE(reader) << reader.error().text();
    ASSERT_EQ(reader->tensors()->size(), static_cast<std::size_t>(kMany));
    for (const std::int64_t i : {std::int64_t{0}, std::int64_t{777}, kMany - 1}) {
      Result<TensorData> got = reader->read_tensor("parameters/p" + std::to_string(i));
      ASSERT_TRUE(got) << got.error().text();
      EXPECT_EQ(std::memcmp(got->bytes.data(), &i, 8), 0);
    }
  };
  expect_all();
  testing::forge(path, [](hid_t file) {
    EXPECT_GT(H5Lexists(file, "parameters/p1234", H5P_DEFAULT), 0);
    EXPECT_GE(H5Gclose(H5Gcreate2(file, "parameters/one_more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), 0);
    testing::replace(file, "parameters/@table/slot", H5T_STD_I32LE, {0}, H5P_DEFAULT);
    const hid_t type = H5Tcopy(H5T_NATIVE_INT), space = H5Screate(H5S_SCALAR);
    EXPECT_GE(H5Aclose(H5Acreate2(file, "added", type, space, H5P_DEFAULT, H5P_DEFAULT)), 0);
    H5Sclose(space);
    H5Tclose(type);
  });
  expect_all();
}

TEST(Hdf5File, LongNamesAreKeptOrRefused) {
  TempDir dir;
  Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "a.h5");
  ASSERT_TRUE(writer);
  const std::string longest = "batch/" + std::string(hdf5::kMostName, 'x');
  EXPECT_TRUE(writer->write_tensor(longest, {DType::uint8, {}, "a"}));
  const Status refused = writer->write_tensor(longest + "x", {DType::uint8, {}, "a"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
  ASSERT_TRUE(writer->write_doc({}));
  ASSERT_TRUE(writer->commit());
  Result<SnapshotReader> reader = SnapshotReader::open(dir / "a.h5");
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_TRUE(reader->read_tensor(longest));
}

TEST(Hdf5File, ATensorIsNoGroup) {
  TempDir dir;
  {
    Result<SnapshotWriter> writer = SnapshotWriter::create(dir / "a.h5");
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->write_tensor("batch/x", {DType::uint8, {}, "a"}));
    const Status refused = writer->write_tensor("batch/x/y", {DType::uint8, {}, "a"});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("there is a batch/x already"), std::string::npos)
        << refused.error().text();
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.string()));
}

}  // namespace
}  // namespace nanquest
