// A recorded step that reads memory mapped from a file: which values stay in that file, and which do not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "probe/record/record.h"
#include "probe/snapshot/reader.h"
#include "probe/tensor/file_sources.h"

#include <ATen/ATen.h>

namespace nanquest {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRows = 64;

class RecordReference : public ::testing::Test {
 protected:
  RecordReference() {
    fs::create_directories(folder_);
    const at::Tensor w = at::rand({2, kRows, kRows});
    std::ofstream(file_, std::ios::binary)
        .write(static_cast<const char*>(w.const_data_ptr()), static_cast<std::streamsize>(w.nbytes()));
    const int file = ::open(file_.c_str(), O_RDONLY);
    memory_ = ::mmap(nullptr, w.nbytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    ::close(file);
    const std::size_t bytes = w.nbytes();
    whole_ = at::from_blob(
        memory_, {2, kRows, kRows}, [bytes](void* at) { ::munmap(at, bytes); }, at::kFloat);
  }
  ~RecordReference() override { fs::remove_all(folder_); }

  /// The step's reader; `weight` is read, `trained` is trained.
  Result<SnapshotReader> recorded(const at::Tensor& weight, bool embed = false, const char* name = "") {
    StepState state;
    state.embed_weights = embed;
    state.parameters = {{"trained", trained_}};
    if (*name) state.parameters.emplace_back(name, weight);
    const Recording recording = record_step(state, [&] {
      const at::Tensor loss = at::mm(at::mm(x_, weight), trained_).sum();
      loss.backward();
      return loss;
    });
    EXPECT_EQ(recording.failure, "");
    const std::string path = (folder_ / "s.h5").string();
    const Status written = write_snapshot(recording, path);
    EXPECT_TRUE(written) << written.error().text();
    return SnapshotReader::open(path);
  }

  static void expect_holds(const SnapshotReader& reader, const at::Tensor& weight) {
    bool found = false;
    const auto all = reader.tensors();
    ASSERT_TRUE(all);
    for (const TensorInfo& t : *all) {
      const auto data = reader.read_tensor(t.path);
      ASSERT_TRUE(data) << data.error().text();
      found = found || (data->bytes.size() == weight.nbytes() &&
                        std::memcmp(data->bytes.data(), weight.const_data_ptr(), weight.nbytes()) == 0);
    }
    EXPECT_TRUE(found);
  }

  const fs::path folder_ =
      fs::path(::testing::TempDir()) / ("nanquest-reference-" + std::to_string(getpid()));
  const std::string file_ = (folder_ / "w.safetensors").string();
  void* memory_ = nullptr;
  at::Tensor whole_, x_ = at::rand({4, kRows}), trained_ = at::rand({kRows, kRows}).set_requires_grad(true);
};

TEST_F(RecordReference, WhatIsInTheFileIsLeftThere) {
  const at::Tensor weight = at::from_blob(static_cast<float*>(memory_) + kRows * kRows, {kRows, kRows});
  for (const char* name : {"", "frozen"}) {
    const auto reader = recorded(weight, false, name);
    ASSERT_TRUE(reader) << reader.error().text();
    ASSERT_EQ(reader->references().size(), 1u);
    const FileReference reference = reader->references()[0];
    EXPECT_EQ(reference.file, fs::canonical(file_).string());
    EXPECT_EQ(reference.offset, weight.nbytes());
    EXPECT_EQ(reference.file_bytes, whole_.nbytes());
    expect_holds(*reader, weight);
  }
}

TEST_F(RecordReference, PartsOfOneMappingToo) {
  // As in safetensors in Python: one storage is the whole file, a weight is a part of it.
  const at::Tensor weight = whole_.select(0, 1);
  const auto reader = recorded(weight, false, "frozen");
  ASSERT_TRUE(reader) << reader.error().text();
  ASSERT_EQ(reader->references().size(), 2u);  // the storage, and the weight by its name
  expect_holds(*reader, weight);
  expect_holds(*reader, whole_);
}

TEST_F(RecordReference, WhoWantsThemGetsThem) {
  const auto reader = recorded(whole_.select(0, 1), /*embed=*/true, "frozen");
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_TRUE(reader->references().empty());
  fs::remove(file_);
  expect_holds(*reader, whole_);
}

TEST_F(RecordReference, WhatWasWrittenToTrainsOrIsTheBatchIsEmbedded) {
  const at::Tensor weight = at::from_blob(memory_, {kRows, kRows});
  {
    trained_ =
        at::from_blob(static_cast<float*>(memory_) + kRows * kRows, {kRows, kRows}).set_requires_grad(true);
    const auto reader = recorded(weight);
    ASSERT_TRUE(reader) << reader.error().text();
    ASSERT_EQ(reader->references().size(), 1u) << "not the one that trains";
    EXPECT_EQ(reader->references()[0].offset, 0u);
  }
  weight[3][5] = 17;
  const auto reader = recorded(weight);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_TRUE(reader->references().empty());
  expect_holds(*reader, weight);
  x_ = at::from_blob(static_cast<float*>(memory_) + kRows * kRows, {4, kRows});
  StepState state;
  state.batch = {{"x", x_}};
  const Recording recording = record_step(state, [&] { return at::relu(x_).sum(); });
  EXPECT_TRUE(recording.references.empty());
}

TEST_F(RecordReference, CopiesAreWhatTheyCameFrom) {
  const at::Tensor weight = at::from_blob(memory_, {kRows, kRows});
  at::Tensor copy = weight.clone();
  came_from(copy, weight);
  {
    const auto reader = recorded(copy);
    ASSERT_TRUE(reader) << reader.error().text();
    ASSERT_EQ(reader->references().size(), 1u);
    expect_holds(*reader, weight);
  }
  copy[0][0] = 3;
  const auto reader = recorded(copy);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_TRUE(reader->references().empty()) << "the copy has changed";
  expect_holds(*reader, copy);
}

TEST_F(RecordReference, AFileThatIsGoneIsNotReferredTo) {
  const at::Tensor weight = at::from_blob(memory_, {kRows, kRows});
  fs::rename(file_, file_ + ".old");
  std::ofstream(file_, std::ios::binary) << std::string(whole_.nbytes(), 'x');
  const auto moved = recorded(weight);
  ASSERT_TRUE(moved) << moved.error().text();
  ASSERT_EQ(moved->references().size(), 1u) << "it has another name, which the system tells";
  EXPECT_EQ(moved->references()[0].file, fs::canonical(file_ + ".old").string());
  fs::remove(file_ + ".old");
  const auto reader = recorded(weight);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_TRUE(reader->references().empty());
  expect_holds(*reader, weight);
}

}  // namespace
}  // namespace nanquest
