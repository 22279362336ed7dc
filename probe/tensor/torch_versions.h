#pragma once
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/version.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

/// What an older LibTorch does not have. No other file asks for LibTorch's version.
namespace nanquest {

#define NANQUEST_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

/// The global ranks in a c10d::ProcessGroup, empty for the group of all ranks; throws where LibTorch does not tell them. LibTorch
/// 2.8 tells none, so there only the group of all ranks is known. A template, because c10d's headers are large.
template <class Group>
std::vector<std::uint64_t> global_ranks_of(Group& group) {
#if NANQUEST_TORCH_AT_LEAST(2, 9)
  return group.getDefaultBackend()->getBackendOptions()->global_ranks_in_group;
#else
  if (group.getGroupDesc() == "default_pg") return {};
  throw std::runtime_error("LibTorch before 2.9 does not tell the ranks of a group");
#endif
}

/// Whether this LibTorch tells the driver's own stream behind a c10::Stream (2.11 and later do).
template <class Stream>
concept TellsNativeStream = requires(const Stream& stream) { stream.native_handle(); };

/// That stream; null where LibTorch does not tell it: no kernel of ours may be started then.
template <class Stream>
void* native_stream(const Stream& stream) {
  if constexpr (TellsNativeStream<Stream>)
    return stream.native_handle();
  else
    return nullptr;
}

/// Free bytes of a device that is not the CPU; 0 where they are not known, as in LibTorch before 2.10.
inline std::uint64_t free_memory_of([[maybe_unused]] at::Device device) noexcept {
#if NANQUEST_TORCH_AT_LEAST(2, 10)
  try {
    return c10::getDeviceAllocator(device.type())
        ->getMemoryInfo(std::max<c10::DeviceIndex>(0, device.index()))
        .first;
  } catch (const c10::Error&) {
  }
#endif
  return 0;
}

/// The most bytes of a device that is not the CPU that its allocator has given to tensors at once; NaN where it does not
/// count them, as in LibTorch before 2.10.
inline double peak_memory_of([[maybe_unused]] at::Device device) noexcept {
#if NANQUEST_TORCH_AT_LEAST(2, 10)
  try {
    using namespace c10::CachingAllocator;
    const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(std::max<c10::DeviceIndex>(0, device.index()));
    return static_cast<double>(stats.allocated_bytes[static_cast<std::size_t>(StatType::AGGREGATE)].peak);
  } catch (const c10::Error&) {
  }
#endif
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace nanquest
