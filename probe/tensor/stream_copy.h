/// A copy that does not change the caches.
#pragma once

#include <cstddef>

namespace nanquest {

/// std::memcpy for bytes that will not be read soon: if the machine can, they are written past the caches,
/// which keep the program's data. Any alignment; any thread.
void stream_copy(void* to, const void* from, std::size_t bytes);

}  // namespace nanquest
