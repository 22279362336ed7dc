// Values in another file: what a snapshot stores for them, and what happens if that file changes.
#include "probe/snapshot/reference.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "probe/numerics/hash.h"
#include "probe/snapshot/file_mapping.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

using testing::TempDir;
namespace fs = std::filesystem;

/// 64 kB in which every byte differs from its neighbours.
std::vector<std::byte> some_bytes() {
  std::vector<std::byte> bytes(1 << 16);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

constexpr std::uint64_t kOffset = 104, kBytes = 40'000;
const char* const kPath = "parameters/fc.weight";

FileReference reference_to(const std::string& file, const std::vector<std::byte>& bytes) {
  FileReference reference;
  reference.path = kPath;
  reference.dtype = DType::float32;
  reference.shape = {100, 100};
  reference.file = file;
  reference.file_bytes = bytes.size();
  reference.offset = kOffset;
  reference.checksum = hash_bytes(bytes.data() + kOffset, kBytes);
  return reference;
}

class References : public ::testing::Test {
 protected:
  References() { fs::create_directories(dir_ / "model"), write_file(weights_, bytes_), write(); }
  ~References() override { ::unsetenv(kModelVariable); }

  void write(const std::string& to = "") {
    auto writer = SnapshotWriter::create(to.empty() ? snapshot_ : to);
    ASSERT_TRUE(writer) << writer.error().text();
    const std::int64_t shape[] = {2};
    const float x[] = {1, 2};
    ASSERT_TRUE(writer->write_tensor("batch/x", {DType::float32, shape, x}));
    ASSERT_TRUE(writer->write_reference(reference_to(weights_, bytes_)));
    ASSERT_TRUE(writer->write_doc({}));
    const Status done = writer->commit();
    ASSERT_TRUE(done) << done.error().text();
  }

  /// The weight as read from the snapshot.
  Result<TensorData> read(const std::string& from = "") const {
    const auto reader = SnapshotReader::open(from.empty() ? snapshot_ : from);
    if (!reader) return reader.error();
    return reader->read_tensor(kPath);
  }

  void expect_weight(const Result<TensorData>& got) const {
    ASSERT_TRUE(got) << got.error().text();
    EXPECT_EQ(got->shape, (std::vector<std::int64_t>{100, 100}));
    ASSERT_EQ(got->bytes.size(), kBytes);
    EXPECT_EQ(std::memcmp(got->bytes.data(), bytes_.data() + kOffset, kBytes), 0);
  }

  void expect_refused(const std::string& what) const {
    const auto got = read();
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::bad_file);
    EXPECT_EQ(got.error().text().find('\n'), std::string::npos);
    for (const std::string& part : {weights_, what, std::string("--model DIR"), snapshot_})
      EXPECT_NE(got.error().text().find(part), std::string::npos) << part << " in " << got.error().text();
  }

  TempDir dir_;
  const std::string weights_ = dir_ / "model/model.safetensors",
                    snapshot_ = dir_ / "run/incidents/step-00000001.r0.h5";
  const std::vector<std::byte> bytes_ = some_bytes();
};

TEST_F(References, AreReadFromTheOtherFileWhichTheSnapshotDoesNotHold) {
  EXPECT_LT(fs::file_size(snapshot_), 30'000u);
  const auto reader = SnapshotReader::open(snapshot_);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ(reader->format_major(), 3);
  EXPECT_TRUE(reader->has_tensor(kPath));
  expect_weight(reader->read_tensor(kPath));
  const auto part = reader->read_range(kPath, 10, 5);
  ASSERT_TRUE(part);
  EXPECT_EQ(std::memcmp(part->bytes.data(), bytes_.data() + kOffset + 40, 20), 0);
  EXPECT_FALSE(reader->read_range(kPath, 9'999, 2));
  const auto all = reader->tensors();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].path, "batch/x");
  EXPECT_FALSE((*all)[0].elsewhere);
  EXPECT_TRUE((*all)[1].elsewhere);
  EXPECT_EQ((*all)[1].bytes, kBytes);
  ASSERT_EQ(reader->references().size(), 1u);
  EXPECT_EQ(reader->references()[0].file, weights_);
  EXPECT_EQ(reader->references()[0].from_here, "../../model/model.safetensors");
}

TEST_F(References, OneChangedByteIsNamed) {
  auto changed = bytes_;
  changed[kOffset + 12'345] ^= std::byte{1};
  write_file(weights_, changed);
  expect_refused("has changed since");
  expect_refused(kPath);
  // Bytes beside the tensor do not matter.
  changed = bytes_;
  changed[kOffset - 1] ^= std::byte{1};
  write_file(weights_, changed);
  expect_weight(read());
}

TEST_F(References, AnotherSizeIsNamed) {
  auto longer = bytes_;
  longer.push_back({});
  write_file(weights_, longer);
  expect_refused("has 65537 bytes, but had 65536");
  fs::resize_file(weights_, 1'000);
  expect_refused("has 1000 bytes");
}

TEST_F(References, AFileThatIsGoneIsNamed) {
  fs::remove(weights_);
  expect_refused("No such file");
  const auto reader = SnapshotReader::open(snapshot_);
  ASSERT_TRUE(reader) << "tables and all else can be read: " << reader.error().text();
  EXPECT_TRUE(reader->read_tensor("batch/x"));
}

TEST_F(References, APipeOfThatNameIsNotWaitedFor) {
  fs::remove(weights_);
  ASSERT_EQ(::mkfifo(weights_.c_str(), 0600), 0);
  expect_refused("No such file");
}

TEST_F(References, FolderOfTheModelMayBeNamed) {
  const std::string folder = dir_ / "elsewhere";
  fs::create_directories(folder);
  ::setenv(kModelVariable, folder.c_str(), 1);
  expect_weight(read());  // not in the new folder, but at the old path
  fs::rename(weights_, folder + "/model.safetensors");
  expect_weight(read());
  // A download has other names: the file with those bytes is used, not another one of that size.
  fs::rename(folder + "/model.safetensors", folder + "/5f3a");
  write_file(folder + "/0000", std::vector<std::byte>(bytes_.size()));
  expect_weight(read());
  fs::remove(folder + "/5f3a");
  expect_refused("nor is it in " + folder);
}

TEST_F(References, RunAndModelMayMoveTogether) {
  TempDir other;
  fs::copy(dir_.string(), other.string(), fs::copy_options::recursive);
  fs::remove(weights_);
  expect_weight(read(other / "run/incidents/step-00000001.r0.h5"));
}

TEST_F(References, WithoutThemAFileIsWhatOlderProgramsRead) {
  ASSERT_TRUE(testing::write_rich(dir_ / "rich.h5"));
  const auto reader = SnapshotReader::open(dir_ / "rich.h5");
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->format_major(), 2);
  EXPECT_TRUE(reader->references().empty());
}

TEST_F(References, ImpossibleOnesAreRefused) {
  const auto refused = [&](const std::function<void(FileReference&)>& change) {
    FileReference reference = reference_to(weights_, bytes_);
    change(reference);
    EXPECT_FALSE(check_reference(reference));
    auto writer = SnapshotWriter::create(dir_ / "bad.h5");
    ASSERT_TRUE(writer);
    EXPECT_FALSE(writer->write_reference(reference));
  };
  refused([](FileReference& r) { r.file = "model.safetensors"; });
  refused([](FileReference& r) { r.file = ""; });
  refused([](FileReference& r) { r.file += std::string(1, '\0'); });
  refused([](FileReference& r) { r.offset = r.file_bytes - kBytes + 1; });
  refused([](FileReference& r) { r.offset = UINT64_MAX; });
  refused([](FileReference& r) { r.shape = {-1}; });
  refused([](FileReference& r) { r.shape = {INT64_MAX, INT64_MAX}; });
  refused([](FileReference& r) { r.shape.assign(9, 1); });
}

TEST_F(References, OfOnePathTwiceAreRefusedByTheReader) {
  auto writer = SnapshotWriter::create(dir_ / "twice.h5");
  ASSERT_TRUE(writer);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(writer->write_reference(reference_to(weights_, bytes_)));
  ASSERT_TRUE(writer->write_doc({}));
  ASSERT_TRUE(writer->commit());
  const auto reader = SnapshotReader::open(dir_ / "twice.h5");
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().text().find("twice"), std::string::npos) << reader.error().text();
}

/// The file of the fixture, mapped.
class Mapped : public References {
 protected:
  void map(int how) {
    const int file = ::open(weights_.c_str(), O_RDONLY);
    at_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes_.size(), PROT_READ | (how == MAP_PRIVATE ? PROT_WRITE : 0), how, file, 0));
    ::close(file);
    ASSERT_NE(at_, MAP_FAILED);
  }
  ~Mapped() override {
    if (at_ != nullptr) ::munmap(at_, bytes_.size());
  }
  std::byte* at_ = nullptr;
};

TEST_F(Mapped, MemoryIsFoundInItsFile) {
  map(MAP_PRIVATE);
  const auto place = FileMappings::now().find(at_ + kOffset, kBytes);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->file, fs::canonical(weights_).string());
  EXPECT_EQ(place->file_bytes, bytes_.size());
  EXPECT_EQ(place->offset, kOffset);
  EXPECT_EQ(hash_if_same(*place, at_ + kOffset, kBytes), hash_bytes(bytes_.data() + kOffset, kBytes));
  EXPECT_TRUE(FileMappings::now().find(at_, bytes_.size()));
  EXPECT_FALSE(FileMappings::now().find(at_, bytes_.size() + 8192));
  EXPECT_FALSE(FileMappings::now().find(bytes_.data(), kBytes)) << "memory of the heap";
  // Pages with other rights in the middle: one mapping for the process, three in the system's list.
  ASSERT_EQ(::mprotect(at_ + 8192, 4096, PROT_READ), 0);
  const auto same = FileMappings::now().find(at_ + kOffset, kBytes);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->offset, kOffset);
}

TEST_F(Mapped, WhatWasWrittenToIsNoLongerTheFile) {
  map(MAP_PRIVATE);
  at_[kOffset + kBytes - 1] ^= std::byte{1};
  const auto place = FileMappings::now().find(at_ + kOffset, kBytes);
  ASSERT_TRUE(place);
  EXPECT_FALSE(hash_if_same(*place, at_ + kOffset, kBytes));
  EXPECT_TRUE(hash_if_same(*place, at_ + kOffset, kBytes - 1));
}

TEST_F(Mapped, SharedMappingsAreData) {
  map(MAP_SHARED);
  EXPECT_FALSE(FileMappings::now().find(at_ + kOffset, kBytes));
}

TEST_F(Mapped, AFileThatIsGoneOrCutOffIsNone) {
  map(MAP_PRIVATE);
  const auto place = FileMappings::now().find(at_, bytes_.size());
  ASSERT_TRUE(place);
  fs::resize_file(weights_, 8192);
  EXPECT_FALSE(hash_if_same(*place, at_, bytes_.size())) << "and the end of the mapping was not touched";
  EXPECT_FALSE(FileMappings::now().find(at_ + kOffset, kBytes));
  fs::remove(weights_);
  EXPECT_FALSE(FileMappings::now().find(at_, 4096));
  EXPECT_FALSE(hash_if_same(*place, at_, 4096));
}

}  // namespace
}  // namespace nanquest
