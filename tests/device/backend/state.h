/// state: what tests count on the device, and what they make go wrong.
#pragma once

#include <cstdint>
#include <mutex>

namespace nqdev {

/// Held while anything of the devices is looked at or changed; the same thread may take it again.
std::recursive_mutex& mutex();

enum class Counter : int {
  launches,          ///< kernels put on a stream
  copies,            ///< host to device, device to host, device to device
  synchronisations,  ///< times the host waited for a stream, an event or a device
  host_reads,        ///< device to host: copies and single numbers
  allocations,       ///< blocks handed out, new or not
  count_
};
void count(Counter which);
std::int64_t counted(Counter which);
void reset_counters();

enum class Failure : int {
  out_of_memory,  ///< an allocation throws c10::OutOfMemoryError
  launch,         ///< a kernel does not run; the next synchronisation throws
  lost,           ///< a launch, and all that comes after it on any device, throws
  count_
};
/// The call number `after` of its kind from now on (0: the next one) fails, once. -1 takes it back.
void fail(Failure what, std::int64_t after);
/// True if this call is the one that must fail.
bool fails_now(Failure what);

/// An error that happened on the device; the next synchronisation throws it, and so do all after it: CUDA
/// does not recover from one either.
void set_pending_error(const char* text);
/// Throws the pending error if there is one, and when the device is lost.
void throw_pending_error();
/// A launch: throws if the device is lost.
void check_alive();
/// A lost device is found again, errors and planned failures are forgotten.
void heal();

}  // namespace nqdev
