#include "probe/tensor/parallel.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <cstring>

#include "probe/tensor/stream_copy.h"

#ifndef INTRA_OP_PARALLEL
#error "at::parallel_for would run on one thread: compile this source with -fopenmp"
#endif

namespace nanquest {

int threads_here() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

void one_thread_here() {
  (void)at::get_num_threads();  // sets it for this thread first
  omp_set_num_threads(1);       // of this thread alone
}

void parallel_ranges(std::int64_t count, std::int64_t grain,
                     c10::function_ref<void(std::int64_t, std::int64_t)> work) {
  at::parallel_for(0, count, grain, work);
}

void parallel_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes < kWorthWaking) {
    std::memcpy(to, from, bytes);
    return;
  }
  parallel_ranges(static_cast<std::int64_t>(bytes), kWorthWaking, [&](std::int64_t begin, std::int64_t end) {
    stream_copy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

}  // namespace nanquest
