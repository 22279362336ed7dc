// What the CUDA back end finds on a real GPU, against the CPU. Skipped where there is none; gpu.sh runs it.
#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>

#include "probe/tensor/back_end.h"
#include "probe/tensor/device_ops.h"
#include "probe/tensor/later_scans.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

int gpus() {
  return c10::impl::hasDeviceGuardImpl(at::kCUDA) ? c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount() : 0;
}

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpus() == 0) GTEST_SKIP() << "no GPU here";
  }
};

void expect_same(const StatsRow& device, const StatsRow& cpu) {
  EXPECT_EQ(device.count, cpu.count);
  EXPECT_EQ(device.nan, cpu.nan);
  EXPECT_EQ(device.pos_inf, cpu.pos_inf);
  EXPECT_EQ(device.neg_inf, cpu.neg_inf);
  EXPECT_EQ(device.zero, cpu.zero);
  EXPECT_EQ(device.subnormal, cpu.subnormal);
  EXPECT_EQ(device.first_bad, cpu.first_bad);
  EXPECT_EQ(device.amax, cpu.amax);
  EXPECT_EQ(device.amin_nonzero, cpu.amin_nonzero);
  EXPECT_EQ(device.has_hash, cpu.has_hash);
  EXPECT_EQ(device.hash, cpu.hash);
  if (std::isfinite(cpu.sum_squares)) {
    EXPECT_NEAR(device.sum_squares, cpu.sum_squares, 0x1p-30 * cpu.sum_squares);
  }
}

/// `n` elements of any bits at all.
at::Tensor any_bits(DType type, std::int64_t n, std::mt19937_64& rng) {
  at::Tensor t = at::empty({n}, scalar_type_of(type));
  auto* bytes = static_cast<unsigned char*>(t.mutable_data_ptr());
  for (std::size_t i = 0; i < t.nbytes(); ++i)
    bytes[i] = static_cast<unsigned char>(type == DType::boolean ? rng() % 2 : rng());
  return t;
}

TEST_F(Gpu, EveryTypeAndSizeIsCountedAndHashedAsOnTheCpu) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < kDTypeCount; ++i)
    for (const std::int64_t n : {0, 1, 3, 127, 1025, 65'537, 300'001}) {
      const auto type = static_cast<DType>(i);
      SCOPED_TRACE(std::string(dtype_name(type)) + " " + std::to_string(n));
      const at::Tensor cpu = any_bits(type, n, rng);
      expect_same(back_end_of(at::kCUDA).stats(cpu.to(at::kCUDA), type, true), *stats_of(cpu, true));
    }
}

TEST_F(Gpu, ViewsAreSeenInLogicalOrder) {
  at::Tensor cpu = at::randn({33, 17, 5});
  cpu[3][2][1].fill_(INFINITY);
  const at::Tensor gpu = cpu.to(at::kCUDA);
  const auto check = [&](const at::Tensor& a, const at::Tensor& b) {
    expect_same(*stats_of(a, true), *stats_of(b, true));
  };
  check(gpu.permute({2, 0, 1}), cpu.permute({2, 0, 1}));
  check(gpu.select(1, 2), cpu.select(1, 2));
  check(gpu.slice(0, 1, 33, 3), cpu.slice(0, 1, 33, 3));
  check(gpu[0].expand({3, 17, 5}), cpu[0].expand({3, 17, 5}));
  check(gpu.flatten().slice(0, 1), cpu.flatten().slice(0, 1));  // not aligned to a word
}

TEST_F(Gpu, ManyAreBegunAndWaitedForOnce) {
  LaterScans later;
  std::vector<at::Tensor> cpu;
  for (std::int32_t i = 0; i < 500; ++i) {
    at::Tensor gpu = at::randn({1000 + i}, at::kCUDA);
    cpu.push_back(gpu.to(at::kCPU));
    ASSERT_TRUE(later.take(gpu, true, i));
    gpu.zero_();  // what comes after is not seen
  }
  for (const auto& [row, stats] : later.read())
    expect_same(stats, *stats_of(cpu[static_cast<std::size_t>(row)], true));
}

TEST_F(Gpu, ManyTensorsAreLookedAtAtOnceAsOnTheCpu) {
  std::mt19937_64 rng(2);
  for (const bool finite : {true, false}) {
    std::vector<at::Tensor> cpu, gpu;
    for (const DType type : {DType::float64, DType::float32, DType::float16, DType::bfloat16})
      for (const std::int64_t n : {0, 1, 3, 1025, 300'001, 1'000'003})
        for (int i = 0; i < 10; ++i) {  // 240 tensors: more than one launch
          cpu.push_back(finite ? at::randn({n}, scalar_type_of(type)) : any_bits(type, n, rng));
          // Not aligned to sixteen bytes.
          gpu.push_back(i == 1 ? at::cat({cpu.back().slice(0, 0, 1), cpu.back()}).to(at::kCUDA).slice(0, n > 0)
                               : cpu.back().to(at::kCUDA));
        }
    const std::vector<at::Tensor> numbers = {at::full({}, 2.5, at::kHalf), at::full({}, 7)};
    const std::vector<at::Tensor> there = {numbers[0].to(at::kCUDA), numbers[1].to(at::kCUDA)};
    const auto run = [&](const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& read) {
      const auto options = at::TensorOptions().device(tensors[0].device());
      const at::Tensor found = at::empty({look_count(tensors.size(), read.size())}, options.dtype(at::kDouble));
      const at::Tensor word = at::full({}, -1, options.dtype(at::kFloat));
      look(tensors, read, found, word);
      return std::pair(found.to(at::kCPU), word.item().toFloat());
    };
    ASSERT_TRUE(looks_at_once(at::kCUDA));
    const auto [here, word_here] = run(cpu, numbers);
    const auto [seen, word] = run(gpu, there);
    EXPECT_EQ(word, finite ? 0 : 1);
    EXPECT_EQ(word, word_here);
    const auto squares = static_cast<std::int64_t>(cpu.size());  // Σx² is added in another order
    EXPECT_TRUE(at::allclose(seen.slice(0, 0, squares), here.slice(0, 0, squares), 1e-9, 0, /*equal_nan=*/true));
    EXPECT_TRUE(at::equal(seen.slice(0, squares), here.slice(0, squares)));
  }
}

TEST_F(Gpu, TheKernelReadsFasterThanACopyToTheHost) {
  const at::Tensor t = at::randn({std::int64_t{64} << 20}, at::kCUDA);
  const auto seconds = [&](const BackEnd& with) {
    (void)with.stats(t, DType::float32, true);
    const auto start = std::chrono::steady_clock::now();
    (void)with.stats(t, DType::float32, true);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double kernel = seconds(back_end_of(at::kCUDA)), copy = seconds(any_back_end());
  std::printf("256 MiB: kernel %.2f ms (%.0f GB/s), copy and CPU %.2f ms\n", 1e3 * kernel, 0.268 / kernel,
              1e3 * copy);
  EXPECT_LT(kernel, copy);
}

}  // namespace
}  // namespace nanquest
