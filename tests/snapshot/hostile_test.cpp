// Files that are damaged, too new or malicious are refused in one line with file and reason.
#include <unistd.h>

#include <cstdio>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/seal.h"
#include "tests/snapshot/forge.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::forge;
using testing::poke;
using testing::TempDir;

class Hostile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(testing::write_rich(path_)); }

  /// The file must be refused as a bad file, in one line that names it and `reason`.
  void expect_refused(const std::string& reason) {
    Result<SnapshotReader> reader = SnapshotReader::open(path_);
    ASSERT_FALSE(reader) << "should be refused: " << reason;
    EXPECT_EQ(reader.error().code, ErrorCode::bad_file);
    EXPECT_EQ(reader.error().text().find('\n'), std::string::npos);
    EXPECT_NE(reader.error().message.find(path_), std::string::npos) << reader.error().text();
    EXPECT_NE(reader.error().message.find(reason), std::string::npos) << reader.error().text();
  }
  void expect_forgery_refused(const std::string& reason, const std::function<void(hid_t)>& change) {
    forge(path_, change);
    expect_refused(reason);
  }
  void flip(std::size_t offset) {
    std::string bytes = *read_whole_file(path_);
    bytes[offset] = static_cast<char>(bytes[offset] ^ 0x10);
    ASSERT_TRUE(write_file_atomically(path_, bytes));
  }

  TempDir dir_;
  std::string path_ = dir_ / "step-00000131.r0.h5";
};

TEST_F(Hostile, ForgingWithoutAChangeIsAccepted) {
  forge(path_, [](hid_t) {});
  Result<SnapshotReader> reader = SnapshotReader::open(path_);
  ASSERT_TRUE(reader) << reader.error().text();
  testing::expect_same_doc(reader->doc(), testing::rich_doc());
}

TEST_F(Hostile, CutOffAtAnyLength) {
  const std::string whole = *read_whole_file(path_);
  for (std::size_t n = 0; n < whole.size(); n += n < 1100 ? 37 : 1999) {
    ASSERT_TRUE(write_file_atomically(path_, whole.substr(0, n)));
    Result<SnapshotReader> reader = SnapshotReader::open(path_);
    ASSERT_FALSE(reader) << n;
    ASSERT_EQ(reader.error().code, ErrorCode::bad_file) << n;
    ASSERT_FALSE(reader.error().hint.empty()) << n;
  }
  ASSERT_TRUE(write_file_atomically(path_, whole + "x"));
  expect_refused("something was added");
}

TEST_F(Hostile, AnyFlippedByteIsNoticed) {
  const std::string whole = *read_whole_file(path_);
  const auto want = testing::rich_tensors();
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 400) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    ASSERT_TRUE(write_file_atomically(path_, bytes));
    Result<SnapshotReader> reader = SnapshotReader::open(path_);
    if (!reader) continue;
    int damaged = 0;  // the damage can only be inside the one large tensor, which has its own checksum
    for (const auto& [name, tensor] : want) damaged += reader->read_tensor(name) ? 0 : 1;
    EXPECT_EQ(damaged, 1) << at;
    EXPECT_FALSE(reader->read_tensor("optimizer/large")) << at;
  }
}

TEST_F(Hostile, NotOurs) {
  ASSERT_TRUE(write_file_atomically(path_, std::string(4096, 'x')));
  expect_refused("not a nanquest snapshot");
  ASSERT_TRUE(write_file_atomically(path_, "\211HDF\r\n\032\n" + std::string(4096, '\0')));
  expect_refused("an HDF5 file, but not a nanquest snapshot");
  ASSERT_TRUE(write_file_atomically(path_, ""));
  expect_refused("empty");
  ::unlink(path_.c_str());
  expect_refused("No such file");
  std::filesystem::create_directory(path_);
  expect_refused("not a file");
}

TEST_F(Hostile, NewerMajorIsRefusedNewerMinorIsRead) {
  ASSERT_TRUE(seal_file(path_, 4, 0, {}));
  expect_refused("format 4.0, this program reads formats up to 3.x");
  ASSERT_TRUE(testing::write_rich(path_));
  forge(path_, [](hid_t file) {
    H5Gclose(H5Gcreate2(file, "later", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const hid_t type = H5Tcreate(H5T_OPAQUE, 3), space = H5Screate(H5S_SCALAR);
    H5Dclose(H5Dcreate2(file, "trace/ops/unheard_of", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  });
  ASSERT_TRUE(seal_file(path_, 2, 9, {}));
  Result<SnapshotReader> reader = SnapshotReader::open(path_);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ(reader->format_minor(), 9);
  testing::expect_same_doc(reader->doc(), testing::rich_doc());
}

TEST_F(Hostile, NeverCompleted) {
  expect_forgery_refused("never completed", [](hid_t file) { H5Adelete(file, "complete"); });
}

TEST_F(Hostile, MissingGroupsAndColumns) {
  for (const char* name :
       {"environment", "config", "history", "modules", "parameters", "buffers", "optimizer", "rng", "batch",
        "trace", "trace/ops", "trace/slots", "stats", "hashes", "verdict", "strings"}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(testing::write_rich(path_));
    expect_forgery_refused("holds no group", [&](hid_t file) { H5Ldelete(file, name, H5P_DEFAULT); });
  }
  ASSERT_TRUE(testing::write_rich(path_));
  expect_forgery_refused("holds no trace/ops/phase",
                         [](hid_t file) { H5Ldelete(file, "trace/ops/phase", H5P_DEFAULT); });
}

TEST_F(Hostile, ExternalStorage) {
  expect_forgery_refused("keeps its data in another file", [](hid_t file) {
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(how, "/etc/hostname", 0, 8);
    testing::replace(file, "batch/tokens", H5T_STD_U8LE, {8}, how);
    H5Pclose(how);
  });
}

TEST_F(Hostile, VirtualDataset) {
  expect_forgery_refused("is a virtual dataset", [](hid_t file) {
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t n = 8;
    const hid_t space = H5Screate_simple(1, &n, nullptr);
    H5Pset_virtual(how, space, "other.h5", "x", space);
    testing::replace(file, "batch/tokens", H5T_STD_U8LE, {8}, how);
    H5Sclose(space);
    H5Pclose(how);
  });
}

TEST_F(Hostile, LinksToElsewhere) {
  expect_forgery_refused("is a link to somewhere else", [](hid_t file) {
    H5Lcreate_external("other.h5", "/x", file, "batch/outside", H5P_DEFAULT, H5P_DEFAULT);
  });
  ASSERT_TRUE(testing::write_rich(path_));
  expect_forgery_refused("is a link to somewhere else", [](hid_t file) {
    H5Lcreate_soft("/stats", file, "batch/soft", H5P_DEFAULT, H5P_DEFAULT);
  });
}

TEST_F(Hostile, AGroupThatContainsItself) {
  expect_forgery_refused("deeper", [](hid_t file) {
    H5Lcreate_hard(file, "trace", file, "trace/again", H5P_DEFAULT, H5P_DEFAULT);
  });
}

TEST_F(Hostile, ShapeBombs) {
  const hsize_t tib = hsize_t{1} << 42;
  expect_forgery_refused("claims more bytes than the file holds", [&](hid_t file) {
    testing::replace(file, "batch/tokens", H5T_STD_U8LE, {tib}, H5P_DEFAULT);
  });
  ASSERT_TRUE(testing::write_rich(path_));
  expect_forgery_refused("claims", [&](hid_t file) {
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 1 << 16;
    H5Pset_chunk(how, 1, &chunk);
    H5Pset_deflate(how, 1);
    testing::replace(file, "stats/count", H5T_STD_U64LE, {tib / 8}, how);
    H5Pclose(how);
  });
}

TEST_F(Hostile, ForeignFilter) {
  expect_forgery_refused("needs a filter that is not allowed", [](hid_t file) {
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 16;
    H5Pset_chunk(how, 1, &chunk);
    H5Pset_nbit(how);
    testing::replace(file, "batch/tokens", H5T_STD_I32LE, {16}, how);
    H5Pclose(how);
  });
}

TEST_F(Hostile, TooManyDimensions) {
  expect_forgery_refused("more than 8 dimensions", [](hid_t file) {
    testing::replace(file, "batch/tokens", H5T_STD_U8LE, std::vector<hsize_t>(9, 1), H5P_DEFAULT);
  });
}

TEST_F(Hostile, WrongTypesAndLengths) {
  expect_forgery_refused("trace/ops/phase is not a 1-D column of uint8", [](hid_t file) {
    testing::replace(file, "trace/ops/phase", H5T_IEEE_F32LE, {2}, H5P_DEFAULT);
  });
  const hid_t early = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_alloc_time(early, H5D_ALLOC_TIME_EARLY);
  ASSERT_TRUE(testing::write_rich(path_));
  expect_forgery_refused("trace/ops/phase has 3 rows, its table 2", [&](hid_t file) {
    testing::replace(file, "trace/ops/phase", H5T_STD_U8LE, {3}, early);
  });
  ASSERT_TRUE(testing::write_rich(path_));
  expect_forgery_refused("must hold one value", [&](hid_t file) {
    testing::replace(file, "trace/loss", H5T_STD_I32LE, {2}, early);
  });
  H5Pclose(early);
}

TEST_F(Hostile, AStatedTypeThatIsNotTheStoredOne) {
  expect_forgery_refused("is not of its stated type", [](hid_t file) {
    const hid_t from = H5Dopen2(file, "parameters/all.float16", H5P_DEFAULT);
    H5Adelete(from, "dtype");
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, 7);
    const hid_t attribute = H5Acreate2(from, "dtype", type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, "float64");
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(from);
  });
}

TEST_F(Hostile, IndicesOutOfRange) {
  struct Case {
    const char* column;
    hsize_t row;
    long long value;
    const char* reason;
  };
  const Case cases[] = {{"trace/ops/module", 1, 2, "trace/ops row 1: module 2 of 2"},
                        {"trace/ops/module", 0, -2, "module -2"},
                        {"trace/ops/forward_op", 0, 2, "forward op 2 of 2"},
                        {"trace/ops/rng", 0, 2, "rng state 2 of 2"},
                        {"trace/ops/stack", 0, 99, "stack 99 of 3"},
                        {"trace/ops/first_arg", 1, 6, "arguments 6+5 of 9"},
                        {"trace/ops/arg_count", 1, -1, "arguments 4+-1 of 9"},
                        {"trace/ops/first_output", 1, 2147483647, "outputs"},
                        {"trace/ops/written_count", 0, 3, "written tensors 0+3 of 2"},
                        {"trace/ops/phase", 0, 4, "unknown code 4"},
                        {"trace/ops/name", 0, 100000, "names string"},
                        {"trace/args/kind", 0, 11, "unknown code 11"},
                        {"trace/args/tensor", 0, 4, "trace/args row 0: tensor 4 of 4"},
                        {"trace/args/integer", 1, 1LL << 40, "do not nest"},
                        {"trace/args/integer", 1, -1, "do not nest"},
                        {"trace/tensors/slot", 0, 3, "slot 3 of 3"},
                        {"trace/tensors/stats", 0, 3, "stats 3 of 3"},
                        {"trace/tensors/dtype", 0, 17, "unknown code 17"},
                        {"trace/tensors/sizes", 0, -1, "impossible shape"},
                        {"trace/tensors/sizes", 0, 1LL << 62, "impossible shape"},
                        {"trace/tensors/strides", 0, 1LL << 62, "impossible strides"},
                        {"trace/tensors/sizes_offsets", 1, 77, "do not cut"},
                        {"trace/tensors/sizes_offsets", 1, 1, "differ in length"},
                        {"trace/slots/origin", 0, 8, "unknown code 8"},
                        {"trace/written", 0, 4, "trace/written row 0: index 4 of 4"},
                        {"trace/gradients", 2, 4, "trace/gradients row 2: index 4 of 4"},
                        {"trace/loss", 0, 4, "loss 4 of 4"},
                        {"trace/gate", 0, 4, "unknown code 4"},
                        {"parameters/@table/slot", 0, 3, "parameters row 0: slot 3 of 3"},
                        {"hashes/present", 0, 2, "unknown code 2"},
                        {"verdict/culprit/op", 0, 2, "verdict/culprit row 0: op 2 of 2"},
                        {"verdict/culprit/lineage", 1, 2, "index 2 of 2"},
                        {"verdict/culprit/suppressed", 0, -5, "index -5 of 2"},
                        {"twin/ops", 0, 3, "more ops are alike"},
                        {"twin/values/slot", 0, 3, "twin/values row 0: slot 3 of 3"},
                        {"twin/values/op", 1, 2, "twin/values row 1: op 2 of 2"},
                        {"twin/values/slot", 1, 0, "for a slot or for a host write"},
                        {"strings/offsets", 1, 1 << 20, "do not cut"}};
  const std::string whole = *read_whole_file(path_);
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.column) + " = " + std::to_string(c.value));
    ASSERT_TRUE(write_file_atomically(path_, whole));
    expect_forgery_refused(c.reason, [&](hid_t file) { poke(file, c.column, c.row, c.value); });
  }
}

TEST_F(Hostile, ReaderLimits) {
  ReaderLimits limits;
  limits.max_tensor_bytes = 1000;
  Result<SnapshotReader> reader = SnapshotReader::open(path_, limits);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_TRUE(reader->read_tensor("batch/tokens"));
  EXPECT_FALSE(reader->read_tensor("optimizer/large"));
  EXPECT_TRUE(reader->read_range("optimizer/large", 0, 250));
  EXPECT_FALSE(reader->read_range("optimizer/large", 0, 251));
  limits.max_rows = 1;
  EXPECT_FALSE(SnapshotReader::open(path_, limits));
}

TEST_F(Hostile, RepackedTensorsAreStillRead) {
  const auto want = testing::rich_tensors();
  const std::string name = "optimizer/large";
  forge(path_, [&](hid_t file) {
    const hid_t old = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
    const hid_t space = H5Dget_space(old), how = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[2] = {7, 100};
    H5Pset_chunk(how, 2, chunk);
    H5Pset_shuffle(how);
    H5Pset_deflate(how, 1);
    H5Pset_fletcher32(how);
    std::vector<float> values(20000);
    H5Dread(old, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    const hid_t copy = H5Dcreate2(file, "packed", H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Dwrite(copy, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    for (const char* attribute : {"kind", "dtype", "checksum"}) {
      const hid_t from = H5Aopen(old, attribute, H5P_DEFAULT), type = H5Aget_type(from),
                  one = H5Screate(H5S_SCALAR);
      std::vector<char> value(H5Tget_size(type));
      H5Aread(from, type, value.data());
      const hid_t to = H5Acreate2(copy, attribute, type, one, H5P_DEFAULT, H5P_DEFAULT);
      H5Awrite(to, type, value.data());
      for (const hid_t id : {from, to}) H5Aclose(id);
      H5Tclose(type);
      H5Sclose(one);
    }
    for (const hid_t id : {old, copy}) H5Dclose(id);
    H5Sclose(space);
    H5Pclose(how);
  });
  Result<SnapshotReader> reader = SnapshotReader::open(path_);
  ASSERT_TRUE(reader) << reader.error().text();
  Result<TensorData> packed = reader->read_tensor("packed"), plain = reader->read_tensor(name);
  ASSERT_TRUE(packed) << packed.error().text();
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(packed->bytes, plain->bytes);
  Result<TensorData> part = reader->read_range("packed", 12345, 3);
  ASSERT_TRUE(part);
  EXPECT_EQ(std::memcmp(part->bytes.data(), plain->bytes.data() + 12345 * 4, 12), 0);
}

}  // namespace
}  // namespace nanquest
