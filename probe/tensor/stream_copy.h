/// A copy that leaves the caches as they are.
#pragma once

#include <cstddef>

namespace nanquest {

/// std::memcpy for bytes that nobody will read soon: where the machine can, they are written past the caches,
/// which keep what the program works on. Any alignment; any thread.
void stream_copy(void* to, const void* from, std::size_t bytes);

}  // namespace nanquest
