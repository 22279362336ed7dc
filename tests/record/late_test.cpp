// The result of a collective is there only after a wait: it is kept when it is first read, or at the end of
// the step, watched or not.
#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <map>

#include "probe/observe/observer.h"
#include "tests/record/side_by_side.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

/// A collective that returns before it has written, as NCCL's do; `arrive` writes.
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
  const Recording recording = record_step({},
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

/// Memory of the step itself that does not need a copy.
at::Tensor brought() {
  at::Tensor t = at::empty({1 << 15});
  fill_later(t);
  arrive();
  return t;
}

/// The results of the fake collectives in the file of the step, in order.
std::vector<at::Tensor> kept_of(const Recording& recording) {
  const std::map<std::string, at::Tensor> data(recording.data.begin(), recording.data.end());
  std::vector<at::Tensor> kept;
  for (const OpRow& op : recording.doc.ops)
    if (op.name == "c10d::nanquest_test_fill_" && data.count(op.host_data))
      kept.push_back(data.at(op.host_data));
  return kept;
}

void expect_sevens(const std::vector<at::Tensor>& kept, std::size_t count) {
  ASSERT_EQ(kept.size(), count);
  for (const at::Tensor& values : kept) EXPECT_TRUE(at::equal(values, at::full({1 << 15}, 7.f)));
}

TEST(Lent, StaysAsItArrivedWhateverTheStepDoesWithIt) {
  at::Tensor alive;
  const Recording recording = record_step({},
                                          [&] {
                                            alive = brought();
                                            at::Tensor loss = alive.sum();
                                            alive.narrow(0, 5, 100).mul_(2);
                                            at::Tensor freed = brought();
                                            loss += freed.sum();
                                            return loss;
                                          },
                                          {.watch = false, .stacks = false});
  EXPECT_TRUE(recording.notes.empty()) << recording.notes.front();
  alive.zero_();
  expect_sevens(kept_of(recording), 2);
  const VerifyResult same = verify(replayer_of(recording));
  EXPECT_TRUE(same.bit_exact) << same.first_mismatch;
}

TEST(Lent, WhatIsGoneIsNotMadeUp) {
  const Recording recording =
      record_step({},
                  [&] {
                    const at::Tensor resized = brought(), scribbled = brought();
                    at::Tensor loss = resized.sum() + scribbled.sum();
                    at::native::resize_bytes_nocuda(resized.storage(), 0);
                    std::fill_n(scribbled.mutable_data_ptr<float>(), scribbled.numel(), 8.f);
                    return loss;
                  },
                  {.watch = false, .stacks = false});
  EXPECT_TRUE(kept_of(recording).empty());
  ASSERT_FALSE(recording.notes.empty());
  EXPECT_NE(recording.notes.back().find("freed or overwritten unseen"), std::string::npos)
      << recording.notes.back();
}

/// Steps that the recorder keeps, and their contents.
struct Kept {
  Recorder recorder{{.stacks = false}};
  std::int64_t number = 0;

  void step(const std::function<void()>& run) {
    const auto session = ObserverSession::start(recorder);
    ASSERT_TRUE(session);
    recorder.begin_step(number++);
    const at::NoGradGuard no_grad;
    run();
    recorder.end_step(/*keep=*/true);
  }
  Recording of(std::int64_t step) {
    StepTables tables(recorder, *recorder.find(step));
    tables.build({});
    return std::move(tables.recording);
  }
};

TEST(Lent, IsCopiedBeforeALaterStepWritesThere) {
  Kept run;
  at::Tensor gradient;
  run.step([&] {
    gradient = brought();
    (void)gradient.sum();
  });
  const float* const memory = run.recorder.find(0)->kept.outputs().at(0).value.const_data_ptr<float>();
  EXPECT_EQ(memory, gradient.const_data_ptr<float>()) << "it is copied though nobody writes there";
  run.step([&] { gradient.zero_(); });
  EXPECT_NE(run.recorder.find(0)->kept.outputs().at(0).value.const_data_ptr<float>(), memory);
  run.step([&] { (void)gradient.sum(); });
  expect_sevens(kept_of(run.of(0)), 1);
}

TEST(Lent, IsCopiedBeforeAnUpdateThatIsNotRecorded) {
  Kept run;
  at::Tensor gradient;
  run.step([&] {
    gradient = brought();
    (void)gradient.sum();
    run.recorder.end_step(/*keep=*/true);
    gradient.mul_(0.5);
  });
  expect_sevens(kept_of(run.of(0)), 1);
}

}  // namespace
}  // namespace nanquest::testing
