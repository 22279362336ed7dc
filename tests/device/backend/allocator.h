/// allocator: device memory that is handed out again at once, as caching allocators do.
///
/// A freed block goes to whoever asks next on the same stream, although kernels that use it have not run:
/// they come first in the stream's order. What other streams use must be said (record_stream); then the block
/// waits for them. What a stream allocates while it captures is the graph's, which will use it again whenever
/// it is replayed: until then it is handed out again within that capture alone. Pinned host memory has an
/// allocator of its own.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <cstdint>

namespace nqdev {

c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* address);

/// `stream` uses the block: it is not handed out again before the stream has come to where it is now when the
/// block is freed.
void record_stream(const c10::DataPtr& block, const c10::Stream& stream);

struct Captured;
/// The memory of this graph's capture may be used again.
void release_graph(const Captured* graph);

/// Bytes of live blocks of a device, and the most that may be alive (then: out of memory).
std::int64_t live_bytes(int device);
void set_limit(int device, std::int64_t bytes);

}  // namespace nqdev
