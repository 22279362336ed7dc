#include "probe/tensor/back_end.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "probe/tensor/cuda_module.h"
#include "probe/tensor/device_ops.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

[[maybe_unused]] int gpus() {
  return c10::impl::hasDeviceGuardImpl(at::kCUDA) ? c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount() : 0;
}

TEST(BackEnd, ACpuPutsNothingOff) {
  const at::Tensor t = at::randn({64});
  EXPECT_EQ(back_end_of(at::kCPU).begin(t, DType::float32, true), nullptr);
  EXPECT_EQ(back_end_of(at::kCPU).stats(t, DType::float32, true).hash, stats_of(t, true)->hash);
}

TEST(BackEnd, ADeviceWithoutOneOfItsOwnIsLookedAtByAtenAlone) {
  EXPECT_EQ(&back_end_of(at::kMPS), &any_back_end());
  EXPECT_EQ(&back_end_of(at::kPrivateUse1), &any_back_end());
  at::Tensor t = at::randn({5, 7}).t();
  t[2][1].fill_(INFINITY);
  for (const bool hash : {false, true}) {
    const StatsRow any = any_back_end().stats(t, DType::float32, hash), cpu = *stats_of(t, hash);
    EXPECT_EQ(any.pos_inf, 1u);
    EXPECT_EQ(any.first_bad, cpu.first_bad);
    EXPECT_EQ(any.sum_squares, cpu.sum_squares);
    EXPECT_EQ(any.has_hash, hash);
    EXPECT_EQ(any.hash, cpu.hash);
  }
}

#ifdef NANQUEST_TEST_CUDA
TEST(BackEnd, TheKernelsForGpusAreLoadedAndWithoutAGpuTheySayWhyTheyDontRun) {
  if (gpus() > 0) GTEST_SKIP() << "there is a GPU";
  const Result<const CudaKernels*>& kernels = cuda_kernels();
  ASSERT_TRUE(kernels) << kernels.error().text();
  float memory[4] = {};
  PartFound found;
  const Status launched = (*kernels)->scan_parts(DType::float32, memory, 4, &found, nullptr);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, ErrorCode::unsupported) << launched.error().text();
  EXPECT_TRUE((*kernels)->scan_parts(DType::float32, memory, 0, &found, nullptr));  // nothing to launch
  ASSERT_FALSE(cuda_kernels_run());
  EXPECT_EQ(cuda_kernels_run().error().code, ErrorCode::unsupported) << cuda_kernels_run().error().text();
  EXPECT_EQ(&back_end_of(at::kCUDA), &any_back_end());
  EXPECT_FALSE(looks_at_once(at::kCUDA));
}
#endif

}  // namespace
}  // namespace nanquest
