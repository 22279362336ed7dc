// The test device itself, from C++: what programs without Python see of it.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/device/backend/allocator.h"
#include "tests/device/backend/generator.h"
#include "tests/device/backend/memory.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

namespace nqdev {
namespace {

const at::TensorOptions kHere = at::TensorOptions().dtype(at::kFloat).device("nqdev");

class Device : public ::testing::Test {
 protected:
  void SetUp() override {
    heal();
    set_seed(0);
    reset_counters();
  }
};

/// Steps of AdamW on a small network; everything as it ends up on the CPU.
std::vector<at::Tensor> trained(at::Device device) {
  at::manual_seed(3);
  std::vector<at::Tensor> weights{at::randn({16, 32}), at::randn({32}), at::randn({32}), at::randn({32, 4})};
  const at::Tensor input = at::randn({64, 16}).to(device), target = at::randint(4, {64}).to(device);
  std::vector<at::Tensor> m, v, steps;
  for (at::Tensor& w : weights) {
    w = w.to(device).requires_grad_(true);
    m.push_back(at::zeros_like(w.detach()));
    v.push_back(at::zeros_like(w.detach()));
    steps.push_back(at::zeros({}, w.options().requires_grad(false)));
  }
  std::vector<at::Tensor> results;
  for (int step = 0; step < 5; ++step) {
    const at::Tensor h = at::gelu(at::layer_norm(at::mm(input, weights[0]), {32}, weights[1], weights[2]));
    const at::Tensor loss = at::cross_entropy_loss(at::mm(h, weights[3]), target);
    loss.backward();
    results.push_back(loss.detach().cpu());
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (at::Tensor& w : weights) gradients.push_back(w.grad());
    at::_foreach_add_(steps, 1);
    at::_fused_adamw_(weights, gradients, m, v, {}, steps, 0.01, 0.9, 0.999, 0.01, 1e-8, false, false);
    for (at::Tensor& w : weights) w.mutable_grad().reset();
  }
  for (const at::Tensor& w : weights) results.push_back(w.detach().cpu());
  return results;
}

TEST_F(Device, AnMlpTrainsBitForBitAsOnTheCpuInAnyOrder) {
  const std::vector<at::Tensor> expected = trained(at::kCPU);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    set_seed(seed);
    const std::vector<at::Tensor> results = trained(at::Device("nqdev"));
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_TRUE(at::equal(results[i], expected[i])) << "seed " << seed << ", tensor " << i;
  }
}

using DeviceDeathTest = Device;
TEST_F(DeviceDeathTest, TheHostCannotReadItsMemory) {
  const at::Tensor there = at::ones({4}, kHere);
  EXPECT_DEATH((void)*static_cast<volatile const float*>(there.const_data_ptr()),
               "the host touched device memory");
}

TEST_F(Device, MemoryIsClosedAgainAfterEachKernelAndOpenWithinOne) {
  EXPECT_EQ(device_of(at::ones({4}, kHere).const_data_ptr()), 0);
  const at::Tensor there = at::ones({4}, kHere);
  const Unlocked open;
  EXPECT_EQ(static_cast<const float*>(there.const_data_ptr())[3], 1.0f);
}

TEST_F(Device, AStreamThatWaitsForAnEventSeesWhatWasMadeBefore) {
  std::set<float> without;
  for (std::uint64_t seed = 1; seed < 40; ++seed)
    for (const bool wait : {true, false}) {
      set_seed(seed);
      const at::Tensor value = at::zeros({4}, kHere);
      synchronise_device(0);
      const c10::Stream side = stream_of(0, new_stream(0));
      value.add_(1);
      c10::Event made(c10::DeviceType::PrivateUse1);
      made.record(stream_of(0, current_stream(0)));
      if (wait) made.block(side);
      at::Tensor seen;
      {
        const c10::StreamGuard on_side(side);
        seen = value * 1;
        synchronise(0, side.id());
      }
      const float result = seen[0].item<float>();
      synchronise_device(0);
      if (wait)
        EXPECT_EQ(result, 1.0f) << seed;
      else
        without.insert(result);
    }
  EXPECT_EQ(without, (std::set<float>{0.0f, 1.0f}));
}

TEST_F(Device, FreedBlocksAreHandedOutAtOnceButForRecordedStreams) {
  set_seed(1);
  at::Tensor a = at::empty({100}, kHere);
  const void* const at_first = a.const_data_ptr();
  a = at::empty({0}, kHere);
  a = at::empty({100}, kHere);
  EXPECT_EQ(a.const_data_ptr(), at_first);
  const c10::Stream side = stream_of(0, new_stream(0));
  // The side stream waits for an event that was not reached yet.
  const auto gate = std::make_shared<Event>();
  gate->recorded = 1;
  wait(gate, 0, side.id());
  a.record_stream(side);
  a = at::empty({0}, kHere);
  EXPECT_NE((a = at::empty({100}, kHere)).const_data_ptr(), at_first);
  gate->done = 1;
  synchronise(0, side.id());
  EXPECT_EQ(at::empty({100}, kHere).const_data_ptr(), at_first);
}

TEST_F(Device, OutArgumentsGrowAndWhatValuesDecideWaits) {
  set_seed(2);
  at::Tensor out = at::empty({0}, kHere);
  at::add_out(out, at::ones({3}, kHere), at::ones({3}, kHere));
  EXPECT_EQ(out.sum().item<float>(), 6.0f);
  EXPECT_EQ(at::nonzero(out).size(0), 3);
  at::Tensor found = at::empty({0}, kHere.dtype(at::kLong));
  at::nonzero_out(found, out - 2);
  EXPECT_EQ(found.size(0), 0);
  EXPECT_TRUE(at::equal(out, out.clone()));
  out.resize_({1000});
  EXPECT_EQ(out[2].item<float>(), 2.0f);
}

TEST_F(Device, GeneratorsCount) {
  at::Generator generator = new_generator(0);
  generator.set_current_seed(5);
  const at::Tensor a = at::randn({10}, generator, kHere);
  EXPECT_EQ(generator.get_offset(), 12u);
  generator.set_offset(0);
  EXPECT_TRUE(at::equal(at::randn({10}, generator, kHere), a));
  EXPECT_FALSE(at::equal(at::randn({10}, generator, kHere), a));
  EXPECT_EQ(generator.clone().get_offset(), 24u);
}

TEST_F(Device, FailuresCanBePlanned) {
  fail(Failure::launch, 1);
  at::Tensor a = at::zeros({3}, kHere);
  a.add_(1);  // does not run
  EXPECT_THROW(synchronise_device(0), c10::Error);
  EXPECT_THROW(synchronise_device(0), c10::Error);
  heal();
  EXPECT_EQ(a.sum().item<float>(), 0.0f);
  fail(Failure::out_of_memory, 0);
  EXPECT_THROW((void)at::zeros({3}, kHere), c10::OutOfMemoryError);
  fail(Failure::lost, 0);
  EXPECT_THROW(a.add_(1), c10::Error);
  EXPECT_THROW((void)a.cpu(), c10::Error);
  heal();
  EXPECT_EQ(a.sum().item<float>(), 0.0f);
}

TEST_F(Device, NothingOfItsOwnWorkIsSeenByObservers) {
  std::vector<std::string>* const names = new std::vector<std::string>;
  static std::vector<std::string>* seen;
  seen = names;
  const at::CallbackHandle handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& f) -> std::unique_ptr<at::ObserverContext> {
        seen->emplace_back(f.name());
        return nullptr;
      }));
  const at::Tensor a = at::ones({4, 4}, kHere);
  set_seed(4);
  names->clear();
  const at::Tensor b = at::mm(a, a);
  synchronise_device(0);
  at::removeCallback(handle);
  EXPECT_EQ((*names)[0], "aten::mm");
  EXPECT_EQ(std::count(names->begin(), names->end(), "aten::mm"), 1);
  EXPECT_EQ(std::count(names->begin(), names->end(), "aten::copy_"), 0);
  delete names;
}

}  // namespace
}  // namespace nqdev
