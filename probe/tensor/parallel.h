/// Work for LibTorch's own threads.
///
/// at::parallel_for is a template that runs everything on the calling thread where it is compiled without
/// OpenMP: it belongs into one source with that switch, which is this room's.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstddef>
#include <cstdint>

namespace nanquest {

/// Bytes from which on another thread is worth waking.
inline constexpr std::size_t kWorthWaking = std::size_t{1} << 20;

/// Threads that `parallel_ranges` may use here, the calling one among them: 1 inside another parallel region.
int threads_here();

/// Calls `work(begin, end)` for ranges that together are [0, count), on as many threads as the program lets
/// LibTorch have (at::get_num_threads), but no more than one for each `grain` begun; returns when all are
/// done. Inside another parallel region everything runs on the calling thread. What `work` throws is thrown
/// again here.
void parallel_ranges(std::int64_t count, std::int64_t grain,
                     c10::function_ref<void(std::int64_t begin, std::int64_t end)> work);

/// std::memcpy; where it is large enough by several threads and past their caches: for what nobody will read
/// soon.
void parallel_copy(void* to, const void* from, std::size_t bytes);

}  // namespace nanquest
