/// KeptUpdate: what an update overwrites on a device. If the gate's word says that the step is bad, the
/// device keeps the values before the update and puts them back after it; nobody waits. A healthy step costs
/// launches that return at once, and memory: as much as the update overwrites, all the time.
///
///     if (const std::string why = kept.make_room(overwritten); !why.empty()) … wait for the gate instead …
///     kept.keep(word);
///     … optimizer.step() …
///     kept.put_back();
///
/// One update at a time, all of a device on the same stream; one thread. Holds the tensors from `make_room`
/// to `put_back`.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nanquest::attach {

class KeptUpdate {
 public:
  /// Makes room for the values of these tensors, which the coming update overwrites. Returns "", or why the
  /// device can't keep them: a sentence's end. What has been refused for want of memory is not tried again.
  std::string make_room(const std::vector<at::Tensor>& overwritten);
  /// Queues the kernel that keeps them if `word` (device_ops.h) is not 0. Throws c10::Error if the device
  /// refuses.
  void keep(const at::Tensor& word);
  /// Queues the kernel that puts them back if that word is not 0. Does nothing without `keep`. Returns the
  /// tensors that may be written.
  std::vector<at::Tensor> put_back();

 private:
  /// What is kept on one device.
  struct Room {
    at::Device device;
    at::Tensor memory = {};
    std::vector<std::size_t> bytes = {};       ///< of each tensor
    std::vector<at::Tensor> parts = {};        ///< of `memory`, one for each
    std::optional<c10::Stream> stream = {};    ///< of all updates so far
    std::int64_t too_much = INT64_MAX;         ///< bytes that there was no memory for
    std::vector<at::Tensor> overwritten = {};  ///< of the coming update
  };
  Room& room_on(at::Device device);
  static std::string divide(Room& room);
  static bool grow(Room& room, std::int64_t bytes);

  std::vector<Room> rooms_;
  at::Tensor word_;
};

}  // namespace nanquest::attach
