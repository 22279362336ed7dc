// What a collective writes is there when somebody has waited for it: it is kept when it is read first, or at the
// end of the step, watched or not.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <map>

#include "tests/record/side_by_side.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

/// A collective that returns before it has written, as NCCL's do: `arrive` writes.
at::Tensor in_flight;
void begin_to_fill(const at::Tensor& t) {
  in_flight = t;
}
void arrive() {
  std::fill_n(in_flight.mutable_data_ptr<float>(), in_flight.numel(), 7.f);
  in_flight.reset();
}

TORCH_LIBRARY_FRAGMENT(c10d, m) {
  m.def("nanquest_test_fill_(Tensor(a!) t) -> ()");
}
TORCH_LIBRARY_IMPL(c10d, CPU, m) {
  m.impl("nanquest_test_fill_", &begin_to_fill);
}

void fill_later(const at::Tensor& t) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("c10d::nanquest_test_fill_", "")
                             .typed<void(const at::Tensor&)>();
  op.call(t);
}

class Late : public ::testing::TestWithParam<bool> {};

TEST_P(Late, IsKeptAsItArrived) {
  const at::Tensor read = at::ones({8}), unread = at::ones({4});
  const Recording recording = record_step(
      {},
      [&] {
        fill_later(read);
        arrive();
        const at::Tensor loss = read.mul(2).sum();
        fill_later(unread);
        arrive();
        return loss;
      },
      {.watch = GetParam(), .stacks = false});
  EXPECT_TRUE(recording.notes.empty()) << recording.notes.front();
  const std::map<std::string, at::Tensor> data(recording.data.begin(), recording.data.end());
  std::vector<std::int64_t> kept;
  for (const OpRow& op : recording.doc.ops) {
    EXPECT_FALSE(op.flags & kOpHostWrite) << "what arrives is no write of the host's";
    if (op.name != "c10d::nanquest_test_fill_") continue;
    ASSERT_EQ(op.written_count, 1);
    ASSERT_TRUE(data.count(op.host_data)) << op.host_data;
    const at::Tensor& values = data.at(op.host_data);
    EXPECT_TRUE(at::equal(values, at::full_like(values, 7)));
    kept.push_back(values.numel());
    const TensorRow& row = recording.doc.tensors.at(
        static_cast<std::size_t>(recording.doc.written.at(static_cast<std::size_t>(op.first_written))));
    if (GetParam()) {
      ASSERT_NE(row.stats, kNone);
      EXPECT_EQ(recording.doc.stats.at(static_cast<std::size_t>(row.stats)).amax, 7);
    }
  }
  EXPECT_EQ(kept, (std::vector<std::int64_t>{8, 4}));
  const Replayer replayer = replayer_of(recording);
  const VerifyResult same = verify(replayer);
  EXPECT_TRUE(same.bit_exact) << same.first_mismatch;
  EXPECT_EQ(replayer.run({}).loss, 8 * 7 * 2);
}

INSTANTIATE_TEST_SUITE_P(Watched, Late, ::testing::Bool());

}  // namespace
}  // namespace nanquest::testing
