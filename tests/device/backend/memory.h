/// memory: the devices' memory, which the host can't touch.
///
/// Each device has one range of addresses under PROT_NONE. It opens while a kernel or a copy of the device runs
/// (Unlocked) and at no other time: a host access is a crash that says so.
#pragma once

#include <cstddef>

namespace nqdev {

inline constexpr int kDevices = 2;
inline constexpr std::size_t kDeviceBytes = std::size_t{2} << 30;

/// `bytes` more of a device's memory, aligned to 512; null if there is no more. It is never given back.
void* more_memory(int device, std::size_t bytes);

/// The device that the address belongs to, -1 if none.
int device_of(const void* address);

/// All devices' memory can be read and written while one of these lives. May be nested; one thread at a time.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
};

}  // namespace nqdev
