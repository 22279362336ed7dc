#include "probe/attach/kept_update.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "probe/record/governor.h"
#include "probe/tensor/device_ops.h"

namespace nanquest::attach {
namespace {

constexpr double kShareOfFree = 0.25;  // of the device's free memory, as for what level trace keeps

std::int64_t aligned(std::size_t bytes) {
  constexpr std::int64_t kStep = 64;
  return (static_cast<std::int64_t>(bytes) + kStep - 1) / kStep * kStep;
}

}  // namespace

std::string KeptUpdate::make_room(const std::vector<at::Tensor>& overwritten) {
  (void)put_back();  // of an update that failed
  if (overwritten.empty()) return "the update overwrites nothing that is known before it";
  for (const at::Tensor& tensor : overwritten) {
    if (!looks_at_once(tensor.device().type()))
      return "nanquest has no kernel for this device (nanquest doctor says why)";
    if (!tensor.is_non_overlapping_and_dense()) return "some of its weights or moments are not dense";
  }
  for (const at::Tensor& tensor : overwritten) room_on(tensor.device()).overwritten.push_back(tensor);
  for (Room& room : rooms_)
    if (std::string why = divide(room); !why.empty()) {
      (void)put_back();
      return why;
    }
  return "";
}

KeptUpdate::Room& KeptUpdate::room_on(at::Device device) {
  const auto found =
      std::find_if(rooms_.begin(), rooms_.end(), [&](const Room& room) { return room.device == device; });
  return found != rooms_.end() ? *found : rooms_.emplace_back(Room{.device = device});
}

/// A part of its memory for each tensor. Returns "", or why there is none.
std::string KeptUpdate::divide(Room& room) {
  if (room.overwritten.empty()) return "";
  const c10::Stream stream = c10::impl::VirtualGuardImpl(room.device.type()).getStream(room.device);
  if (room.stream && *room.stream != stream) return "updates run on several streams";
  std::vector<std::size_t> bytes;
  std::int64_t all = 0;
  for (const at::Tensor& tensor : room.overwritten) {
    bytes.push_back(tensor.nbytes());
    all += aligned(bytes.back());
  }
  if (bytes != room.bytes) {
    room.parts.clear();
    if (!grow(room, all)) return "the device has no memory to keep what an update overwrites";
    std::int64_t begin = 0;
    for (const std::size_t each : bytes) {
      room.parts.push_back(room.memory.narrow(0, begin, static_cast<std::int64_t>(each)));
      begin += aligned(each);
    }
    room.bytes = std::move(bytes);
  }
  room.stream = stream;
  return "";
}

bool KeptUpdate::grow(Room& room, std::int64_t bytes) {
  if (room.memory.defined() && room.memory.numel() >= bytes) return true;
  room.bytes.clear();
  room.memory.reset();
  if (bytes < room.too_much &&
      static_cast<double>(bytes) <= kShareOfFree * static_cast<double>(free_memory(room.device)))
    try {
      room.memory = at::empty({bytes}, at::device(room.device).dtype(at::kByte));
      return true;
    } catch (const c10::Error&) {  // it is told as too little memory
    }
  room.too_much = std::min(room.too_much, bytes);
  return false;
}

void KeptUpdate::keep(const at::Tensor& word) {
  for (const Room& room : rooms_)
    if (!room.overwritten.empty()) copy_if(room.parts, room.overwritten, word);
  word_ = word;
}

std::vector<at::Tensor> KeptUpdate::put_back() {
  const at::Tensor word = std::exchange(word_, {});
  std::vector<at::Tensor> written;
  for (Room& room : rooms_) {
    const std::vector<at::Tensor> here = std::exchange(room.overwritten, {});
    if (!word.defined() || here.empty()) continue;
    copy_if(here, room.parts, word);
    written.insert(written.end(), here.begin(), here.end());
  }
  return written;
}

}  // namespace nanquest::attach
