// No memory is allocated while steps repeat, and none grows.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/record/side_by_side.h"

namespace {

// Counts the recorder's allocations, not LibTorch's own in the observed program.
thread_local bool counting = false;
std::atomic<long> allocations{0};

}  // namespace

void* operator new(std::size_t size) {
  if (counting) allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace nanquest::testing {
namespace {

/// Forwards to the trace and counts its allocations.
class Counted : public OpSink {
 public:
  explicit Counted(Recorder& trace) : trace_(trace) {}
  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override {
    ++ops;
    counting = true;
    auto frame = trace_.on_start(op, inputs);
    counting = false;
    return frame;
  }
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override {
    counting = true;
    trace_.on_end(op, frame, outputs);
    counting = false;
  }
  void on_error(const char* what) override { trace_.on_error(what); }
  long ops = 0;

 private:
  Recorder& trace_;
};

long resident_kib() {
  long pages = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * 4;
}

void train_step(TinyNet& net, Recorder& trace, std::int64_t number) {
  net.clear();
  trace.begin_step(number);
  net.step();
  record::TwinNames names;
  for (const at::Tensor* t : {&net.w1, &net.b1, &net.w2})
    names.state.insert(t->storage().unsafeGetStorageImpl());
  names.batch.insert(net.x.storage().unsafeGetStorageImpl());
  counting = true;
  trace.keep_healthy(number, names);
  counting = false;
  EXPECT_EQ(trace.twins().before(number + 1).front()->round(), number);
  trace.begin_update(true);
  {
    const PhaseScope phase(Phase::optimizer);
    const at::NoGradGuard no_grad;
    for (at::Tensor* p : {&net.w1, &net.b1, &net.w2}) p->sub_(p->grad(), 0.01);
  }
  trace.end_step(true);
}

TEST(RecorderMemory, ARepeatedStepAllocatesNothing) {
  TinyNet net;
  Recorder trace({.keep_steps = 2});
  Counted counted(trace);
  auto session = ObserverSession::start(counted);
  ASSERT_TRUE(session.ok());
  for (int number = 0; number < 20; ++number) train_step(net, trace, number);
  const long ops = counted.ops, before = allocations.load();
  const std::size_t memory = trace.memory();
  for (int number = 20; number < 120; ++number) train_step(net, trace, number);
  EXPECT_GT(counted.ops - ops, 100 * 20);
  EXPECT_EQ(allocations.load() - before, 0);
  EXPECT_EQ(trace.memory(), memory);
  EXPECT_EQ(trace.error(), "");
}

TEST(RecorderMemory, ThousandsOfStepsStayFlat) {
  at::set_num_threads(1);  // tiny ops: several threads would only wait for each other
  TinyNet net;
  Recorder trace({.keep_steps = 2});
  auto session = ObserverSession::start(trace);
  ASSERT_TRUE(session.ok());
  for (int number = 0; number < 200; ++number) train_step(net, trace, number);
  const long before = resident_kib();
  for (int number = 200; number < 2200; ++number) train_step(net, trace, number);
  EXPECT_LT(resident_kib() - before, 1024);
}

TEST(RecorderMemory, AStepThatNeverEndsIsDropped) {
  const at::Tensor x = at::ones({4});
  Recorder ops({.max_ops = 1000}), held({.hold_bytes = 10 << 20});
  {
    auto session = ObserverSession::start(ops);
    ops.begin_step(0);
    for (int i = 0; i < 1500; ++i) (void)x.mul(2);
  }
  EXPECT_EQ(ops.find(0), nullptr);
  auto session = ObserverSession::start(held);
  held.begin_step(0);
  const at::Tensor ours = at::empty({4 << 20});
  for (int i = 0; i < 100; ++i) (void)ours.sum();  // the program holds it as well, which must not matter
  EXPECT_NE(held.find(0), nullptr);
  for (int i = 0; i < 100; ++i) {
    at::Tensor batch;
    {
      const ObserverPause made_elsewhere;
      batch = at::zeros({1 << 18});
    }
    (void)batch.sum();
  }
  EXPECT_EQ(held.find(0), nullptr);
  ops.begin_step(1);
  EXPECT_TRUE(ops.recording());
}

TEST(RecorderMemory, FinishedStepsDoNotKeepADeletedModel) {
  Recorder trace({.keep_steps = 2, .hold_after_bytes = 1 << 20});
  auto session = ObserverSession::start(trace);
  ASSERT_TRUE(session.ok());
  at::Tensor frozen;
  {
    const ObserverPause made_elsewhere;
    frozen = at::ones({1 << 20});  // 4 MiB, never written
  }
  const c10::weak_intrusive_ptr<c10::StorageImpl> memory = frozen.storage().getWeakStorageImpl();
  for (int number = 0; number < 2; ++number) {
    trace.begin_step(number);
    (void)frozen.sum();
    trace.begin_update(true);
    trace.end_step(true);
  }
  const at::Tensor x = at::ones({4});
  for (int i = 0; i < 200; ++i) (void)x.mul(2);
  EXPECT_NE(trace.find(1), nullptr);  // the program holds it as well
  frozen.reset();
  EXPECT_FALSE(memory.expired());
  for (int i = 0; i < 64; ++i) (void)x.mul(2);
  EXPECT_TRUE(memory.expired());
  EXPECT_TRUE(trace.steps().empty());
}

TEST(RecorderMemory, OtherThreadsDoNotDisturb) {
  TinyNet net;
  Recorder trace({.keep_steps = 2});
  auto session = ObserverSession::start(trace);
  ASSERT_TRUE(session.ok());
  std::atomic<bool> stop{false};
  std::thread other([&] {
    const at::Tensor w = leaf(at::randn({16, 8}));
    while (!stop) {
      at::relu(at::matmul(net.x, w.t())).sum().backward();
      w.mutable_grad().reset();
    }
  });
  for (int number = 0; number < 300; ++number) train_step(net, trace, number);
  stop = true;
  other.join();
  EXPECT_EQ(trace.error(), "");
  StepTables tables(trace, *trace.find(299));
  tables.build({});
  EXPECT_LT(tables.recording.doc.ops.size(), 60u);
}

}  // namespace
}  // namespace nanquest::testing
