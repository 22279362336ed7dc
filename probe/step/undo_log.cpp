#include "probe/step/undo_log.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "probe/tensor/device_ops.h"

namespace nanquest {
namespace {

/// Copies values and leaves the version counter alone where it can.
void copy_values(const at::Tensor& from, at::Tensor& to) {
  const bool plain = from.is_cpu() && to.is_cpu() && from.layout() == at::kStrided &&
                     to.layout() == at::kStrided && from.is_non_overlapping_and_dense() &&
                     from.strides() == to.strides() && from.sizes() == to.sizes() &&
                     from.scalar_type() == to.scalar_type() && from.is_conj() == to.is_conj() &&
                     from.is_neg() == to.is_neg();
  if (plain) {
    if (from.numel() > 0) std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
    return;
  }
  const at::NoGradGuard no_grad;
  to.detach().copy_(from.detach());
}

}  // namespace

void UndoLog::watch_device(at::Device device) {
  if (device.type() != at::kCPU && !device.has_index()) device.set_index(0);
  watch_generator(at::globalContext().defaultGenerator(device));
}

void UndoLog::watch_generator(at::Generator generator) {
  for (const Random& r : random_)
    if (r.generator == generator) return;
  random_.push_back({std::move(generator), {}});
}

void UndoLog::watch_buffer(const at::Tensor& buffer) {
  for (const Buffer& b : buffers_)
    if (b.live.is_same(buffer)) return;
  buffers_.push_back({buffer, {}});
}

void UndoLog::watch_host(Save save) {
  hosts_.push_back(std::move(save));
}

void UndoLog::save() {
  saved_ = false;
  host_restores_.clear();
  for (Random& r : random_) {
    const std::lock_guard<std::mutex> lock(r.generator.mutex());
    r.state = r.generator.get_state();
  }
  for (Buffer& b : buffers_) {
    if (!b.copy.defined() || b.copy.sizes() != b.live.sizes()) b.copy = at::empty_like(b.live.detach());
    copy_values(b.live, b.copy);
  }
  for (const Save& host : hosts_) host_restores_.push_back(host());
  saved_ = true;
}

void UndoLog::restore() {
  if (!saved_) return;
  for (Random& r : random_) {
    const std::lock_guard<std::mutex> lock(r.generator.mutex());
    r.generator.set_state(r.state);
  }
  for (Buffer& b : buffers_) copy_values(b.copy, b.live);
  std::exception_ptr failed;
  for (const std::function<void()>& put_back : host_restores_) {
    try {
      if (put_back) put_back();
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  }
  if (failed) std::rethrow_exception(failed);
}

std::vector<at::Tensor> UndoLog::buffers() const {
  std::vector<at::Tensor> all;
  for (const Buffer& b : buffers_) all.push_back(b.live);
  return all;
}

bool UndoLog::restore_buffers_if(const at::Tensor& word) {
  std::vector<at::Tensor> live, copies;
  if (!saved_) return true;
  for (const Buffer& b : buffers_) {
    if (b.live.is_cpu() && b.live.nbytes() == b.copy.nbytes() && b.live.is_contiguous() &&
        std::memcmp(b.live.const_data_ptr(), b.copy.const_data_ptr(), b.live.nbytes()) == 0)
      continue;
    if (b.live.is_cpu() != word.is_cpu() || !looks_at_once(b.live.device().type()) ||
        !b.live.is_non_overlapping_and_dense() || b.live.strides() != b.copy.strides())
      return false;
    live.push_back(b.live);
    copies.push_back(b.copy);
  }
  if (!live.empty()) copy_if(live, copies, word);
  return true;
}

}  // namespace nanquest
