/// Runs work on LibTorch's own threads.
///
/// at::parallel_for is a template that runs everything on the calling thread if it is compiled without
/// OpenMP. So only one source of this room uses it, compiled with that switch.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <cstdint>

namespace nanquest {

/// From this number of bytes on, another thread is worth its start-up cost.
inline constexpr std::size_t kWorthWaking = std::size_t{1} << 20;

/// Threads that `parallel_ranges` may use here, including the calling one: 1 inside another parallel region.
int threads_here();

/// Calls `work(begin, end)` for ranges that together are [0, count), on as many threads as the program allows
/// LibTorch (at::get_num_threads), but at most one for each started `grain`. Returns when all are done.
/// Inside another parallel region everything runs on the calling thread. Exceptions of `work` are rethrown
/// here.
void parallel_ranges(std::int64_t count, std::int64_t grain,
                     c10::function_ref<void(std::int64_t begin, std::int64_t end)> work);

/// From now on everything runs on the calling thread, which is one of ours.
void one_thread_here();

/// std::memcpy; if it is large, with several threads and past their caches: for bytes that will not be read
/// soon.
void parallel_copy(void* to, const void* from, std::size_t bytes);

}  // namespace nanquest
