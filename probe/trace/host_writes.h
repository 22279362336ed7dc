/// host_writes: what a trace says of a write by the host (kOpHostWrite).
#pragma once

namespace nanquest {

/// Overload of such an op if NumPy had a view of the memory, which is of the step: the program may have
/// written there, whatever the bytes are.
inline constexpr const char* kSharedWrite = "shared";

}  // namespace nanquest
