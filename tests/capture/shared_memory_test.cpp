// Memory shared with NumPy and others: both recorders treat it alike, whatever its size.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "probe/capture/recorder_parts.h"
#include "tests/capture/standing_programs.h"

namespace nanquest::testing {
namespace {

std::size_t host_writes(const SnapshotDoc& doc) {
  return static_cast<std::size_t>(std::count_if(
      doc.ops.begin(), doc.ops.end(), [](const OpRow& op) { return (op.flags & kOpHostWrite) != 0; }));
}

/// A buffer that the host fills again between two micro-batches.
class SharedMemory : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(SharedMemory, HasTheSameHostWritesInBothRecorders) {
  std::vector<float> buffer(static_cast<std::size_t>(GetParam()), 1.f);
  const at::Tensor batch = at::from_blob(buffer.data(), {GetParam()});
  StandingTrace trace({.stacks = false});
  Both both(trace);
  trace.begin_step(0);
  {
    auto session = ObserverSession::start(both);
    ASSERT_TRUE(session.ok());
    const at::Tensor first = batch.sum();
    std::fill(buffer.begin(), buffer.end(), 2.f);
    (void)(first + batch.sum());
  }
  StandingTables tables(trace, *trace.find(0));
  tables.build();
  both.recorder.copy_outside();
  EXPECT_EQ(host_writes(tables.recording.doc), host_writes(both.recording.doc));
  expect_same_tables(tables.recording.doc, both.recording.doc);
  if (batch.nbytes() <= kMaxSharedBytes) EXPECT_EQ(host_writes(tables.recording.doc), 1u);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SharedMemory, ::testing::Values(16, 1 << 18, 1 << 20));

}  // namespace
}  // namespace nanquest::testing
