#include "tests/device/backend/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <cstring>
#include <random>
#include <vector>

#include "tests/device/backend/graph.h"
#include "tests/device/backend/memory.h"

namespace nqdev {
namespace {

class Counting final : public c10::GeneratorImpl {
 public:
  explicit Counting(int device)
      : GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)),
                      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  void set_current_seed(std::uint64_t seed) override { draw_ = {seed, 0}; }
  void set_offset(std::uint64_t offset) override { draw_.offset = offset; }
  std::uint64_t get_offset() const override { return draw_.offset; }
  std::uint64_t current_seed() const override { return draw_.seed; }
  std::uint64_t seed() override {
    set_current_seed(std::random_device{}());
    return draw_.seed;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(state.numel() == sizeof draw_ && state.is_cpu(), "nqdev: a state is 16 bytes on the CPU");
    std::memcpy(&draw_, state.data(), sizeof draw_);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    TORCH_CHECK(!capturing(device().index()), "nqdev: a generator can't tell its state while a graph is captured");
    at::Tensor state = at::empty({sizeof draw_}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    std::memcpy(state.mutable_data_ptr(), &draw_, sizeof draw_);
    return state.getIntrusivePtr();
  }
  Draw reserve(std::uint64_t numbers) {
    const Draw from = draw_;
    draw_.offset += (numbers + 3) / 4 * 4;
    return from;
  }

 private:
  Counting* clone_impl() const override {
    auto* copy = new Counting(device().index());
    copy->draw_ = draw_;
    return copy;
  }
  Draw draw_{c10::default_rng_seed_val, 0};
};

std::uint64_t mixed(const Draw& draw) {
  std::uint64_t x = draw.seed * 0x9E3779B97F4A7C15ull + draw.offset;  // the finaliser of SplitMix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

const at::Generator& default_generator(int device) {
  static auto* all = new std::vector<at::Generator>{new_generator(0), new_generator(1)};
  static_assert(kDevices == 2);
  return all->at(static_cast<std::size_t>(device));
}

at::Generator new_generator(int device) {
  return at::make_generator<Counting>(device);
}

Draw reserve(const at::Generator& generator, int device, std::uint64_t numbers) {
  at::Generator from = generator.defined() ? generator : default_generator(device);
  const std::lock_guard lock(from.mutex());
  return static_cast<Counting*>(from.unsafeGetGeneratorImpl())->reserve(numbers);
}

at::Generator generator_at(const Draw& draw) {
  return at::detail::createCPUGenerator(mixed(draw));
}

void with_default_generator_at(const Draw& draw, const std::function<void()>& kernel) {
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  at::Tensor before;
  {
    const std::lock_guard lock(cpu.mutex());
    before = cpu.get_state();
    cpu.set_current_seed(mixed(draw));
  }
  const auto put_back = [&] {
    const std::lock_guard lock(cpu.mutex());
    cpu.set_state(before);
  };
  try {
    kernel();
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

}  // namespace nqdev
