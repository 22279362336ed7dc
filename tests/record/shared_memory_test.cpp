// Memory shared with NumPy and other code, watched and not.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "probe/record/rows.h"
#include "tests/record/side_by_side.h"

namespace nanquest::testing {
namespace {

std::size_t host_writes(const SnapshotDoc& doc) {
  return static_cast<std::size_t>(std::count_if(
      doc.ops.begin(), doc.ops.end(), [](const OpRow& op) { return (op.flags & kOpHostWrite) != 0; }));
}

/// A buffer that the host refills between two micro-batches.
class SharedMemory : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(SharedMemory, AWriteOfTheHostIsAnOpOfItsOwn) {
  std::vector<float> buffer(static_cast<std::size_t>(GetParam()), 1.f);
  const at::Tensor batch = at::from_blob(buffer.data(), {GetParam()});
  Both both;
  {
    auto session = ObserverSession::start(both);
    ASSERT_TRUE(session.ok());
    const at::Tensor first = batch.sum();
    std::fill(buffer.begin(), buffer.end(), 2.f);
    (void)(first + batch.sum());
  }
  // Larger memory is not scanned at each read, because whole data sets are sliced.
  const std::size_t expected = batch.nbytes() <= kMaxSharedBytes ? 1 : 0;
  for (Recorder* recorder : {&both.blind, &both.watching}) {
    StepTables tables(*recorder, *recorder->find(0));
    tables.build({});
    EXPECT_EQ(host_writes(tables.recording.doc), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SharedMemory, ::testing::Values(16, 1 << 18, 1 << 20));

}  // namespace
}  // namespace nanquest::testing
