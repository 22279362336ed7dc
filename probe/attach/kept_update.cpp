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
  const at::Device device = overwritten.front().device();
  if (!looks_at_once(device.type()))
    return "nanquest has no kernel for this device (nanquest doctor says why)";
  std::vector<std::size_t> bytes;
  for (const at::Tensor& tensor : overwritten) {
    if (tensor.device() != device) return "weights and moments of one optimizer lie on several devices";
    if (!tensor.is_non_overlapping_and_dense()) return "some of its weights or moments are not dense";
    bytes.push_back(tensor.nbytes());
  }
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  if (stream_ && *stream_ != stream) return "updates run on several streams";
  if (bytes != bytes_ || room_.device() != device) {
    kept_.clear();
    std::int64_t all = 0;
    for (const std::size_t each : bytes) all += aligned(each);
    if (!has_room(all, device)) return "the device has no memory to keep what an update overwrites";
    std::int64_t begin = 0;
    for (const std::size_t each : bytes) {
      kept_.push_back(room_.narrow(0, begin, static_cast<std::int64_t>(each)));
      begin += aligned(each);
    }
    bytes_ = std::move(bytes);
  }
  stream_ = stream;
  overwritten_ = overwritten;
  return "";
}

bool KeptUpdate::has_room(std::int64_t bytes, at::Device device) {
  if (room_.defined() && room_.device() == device && room_.numel() >= bytes) return true;
  bytes_.clear();
  room_.reset();
  if (bytes < too_much_ &&
      static_cast<double>(bytes) <= kShareOfFree * static_cast<double>(free_memory(device)))
    try {
      room_ = at::empty({bytes}, at::device(device).dtype(at::kByte));
      return true;
    } catch (const c10::Error&) {  // it is told as too little memory
    }
  too_much_ = std::min(too_much_, bytes);
  return false;
}

void KeptUpdate::keep(const at::Tensor& word) {
  copy_if(kept_, overwritten_, word);
  word_ = word;
}

std::vector<at::Tensor> KeptUpdate::put_back() {
  std::vector<at::Tensor> overwritten = std::exchange(overwritten_, {});
  const at::Tensor word = std::exchange(word_, {});
  if (!word.defined()) return {};
  copy_if(overwritten, kept_, word);
  return overwritten;
}

}  // namespace nanquest::attach
