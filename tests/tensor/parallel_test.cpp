#include "probe/tensor/parallel.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "probe/numerics/scan.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

/// The number of threads that LibTorch may use is global: restores it.
struct Threads {
  explicit Threads(int count) : before(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before); }
  const int before;
};

TEST(Parallel, RangesRunBesideEachOther) {
  const Threads two(2);
  EXPECT_EQ(threads_here(), 2);
  std::atomic<int> arrived{0}, inside{0};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallel_ranges(2, 1, [&](std::int64_t, std::int64_t) {
    inside = threads_here();
    // A single thread waits until the time is over.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (++arrived; arrived < 2 && std::chrono::steady_clock::now() < until;) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_EQ(inside, 1);
}

TEST(Parallel, EverythingIsDoneOnceWithAnyNumberOfThreads) {
  for (const int count : {1, 2, 3}) {
    const Threads now(count);
    std::vector<std::atomic<int>> done(1000);
    parallel_ranges(1000, 7, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
    });
    for (const auto& times : done) ASSERT_EQ(times, 1);
  }
}

TEST(Parallel, WhatAThreadThrowsArrives) {
  const Threads two(2);
  EXPECT_THROW(parallel_ranges(2, 1, [](std::int64_t, std::int64_t) { throw std::runtime_error("no"); }),
               std::runtime_error);
}

TEST(Parallel, WhatIsToldOfALargeTensorDoesNotDependOnThreads) {
  at::manual_seed(3);
  for (const at::ScalarType type :
       {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble, at::kFloat8_e4m3fn, at::kInt}) {
    at::Tensor t = at::randn({(6 << 20) + 5}).mul(3).to(type);
    if (at::isFloatingType(type) && type != at::kFloat8_e4m3fn) {
      t[777] = std::numeric_limits<float>::quiet_NaN();
      t[5 << 20] = std::numeric_limits<float>::infinity();
    }
    for (const bool hash : {false, true}) {
      std::optional<StatsRow> alone, both;
      {
        const Threads one(1);
        alone = stats_of(t, hash);
      }
      {
        const Threads two(2);
        both = stats_of(t, hash);
      }
      ASSERT_TRUE(alone && both);
      if (hash) {
        EXPECT_EQ(alone->hash, hash_contents(t.const_data_ptr(), t.nbytes())) << type;
      }
      const ScanResult whole = scan(*dtype_of(type), t.const_data_ptr(), static_cast<std::size_t>(t.numel()));
      EXPECT_EQ(both->first_bad, whole.first_bad) << type;
      EXPECT_EQ(both->count, whole.count) << type;
      EXPECT_EQ(both->subnormal, whole.subnormal) << type;
      EXPECT_NEAR(both->sum_squares, whole.sum_squares, 1e-9 * whole.sum_squares) << type;
      EXPECT_EQ(both->hash, alone->hash) << type;
      EXPECT_EQ(both->first_bad, alone->first_bad) << type;
      EXPECT_EQ(both->nan, alone->nan) << type;
      EXPECT_EQ(both->zero, alone->zero) << type;
      EXPECT_EQ(both->amax, alone->amax) << type;
      EXPECT_EQ(both->amin_nonzero, alone->amin_nonzero) << type;
      EXPECT_EQ(both->sum_squares, alone->sum_squares) << type;
    }
  }
}

}  // namespace
}  // namespace nanquest
