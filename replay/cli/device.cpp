#include <c10/core/impl/VirtualGuardImpl.h>

#include "replay/cli/commands.h"

namespace nanquest::cli {
namespace {

/// A name as a device; nothing if this LibTorch does not know it, or the process has none.
std::optional<c10::Device> device_here(const std::string& name) {
  try {
    const c10::Device device(name);
    if (device.is_cpu()) return device;
    if (!c10::impl::hasDeviceGuardImpl(device.type())) return std::nullopt;
    const int count = c10::impl::VirtualGuardImpl(device.type()).deviceCount();
    const int index = device.has_index() ? device.index() : 0;
    if (index >= count) return std::nullopt;
    return c10::Device(device.type(), static_cast<c10::DeviceIndex>(index));
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

}  // namespace

Result<c10::Device> device_for(const Common& common, const SnapshotDoc& doc) {
  const c10::Device cpu(c10::kCPU);
  const std::string recorded = recorded_device(doc);
  if (common.device.empty()) return device_here(recorded).value_or(cpu);
  const auto device = device_here(common.device);
  if (!device)
    return Error{ErrorCode::usage, "--device " + common.device + ": there is no such device here",
                 "cpu always is; the step was recorded on " + recorded};
  if (!device->is_cpu() && device_here(recorded).value_or(cpu).type() != device->type())
    return Error{ErrorCode::usage, "--device " + common.device + ": the step was recorded on " + recorded,
                 "a step runs where it was recorded, or on the CPU"};
  return *device;
}

}  // namespace nanquest::cli
