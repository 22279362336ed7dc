#include "probe/record/kept_outputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <utility>

#include "probe/record/slots.h"

namespace nanquest::record {
namespace {

/// Below this size copying is faster than looking for an equal value.
constexpr std::size_t kWorthSharing = std::size_t{1} << 16;
/// Samples of 8 bytes each: if one in a hundred bf16 weights differs, one of them shows it.
constexpr std::size_t kSamples = 1024;

}  // namespace

void KeptOutputs::add(OutputPlace place, const at::Tensor& value, std::uint64_t hash) {
  bytes_ += value.nbytes();
  if (!value.is_cpu()) on_device_ += value.nbytes();
  outputs_.push_back({place, value, hash});
}

void KeptOutputs::keep(OutputPlace place, const at::Tensor& t, std::uint64_t hash) {
  add(place, t.detach().clone(at::MemoryFormat::Contiguous), hash);
}

void KeptOutputs::lend(OutputPlace place, const at::Tensor& t, std::uint64_t hash) {
  add(place, t, hash);
  const c10::Storage& storage = t.storage();
  const auto [at, fresh] = lent_.try_emplace(storage.unsafeGetStorageImpl());
  if (!fresh) return;
  at->second.bytes = storage.nbytes();
  if (storage.device().is_cpu()) at->second.samples = hash_of_samples(storage.data(), storage.nbytes());
  if (t.is_inference()) return;
  at->second.version = t.unsafeGetTensorImpl()->version_counter();
  at->second.version_then = at->second.version.current_version();
}

void KeptOutputs::keep_brought(OutputPlace place, const at::Tensor& t, bool gathered, bool stays) {
  if (t.nbytes() < kWorthSharing) return keep(place, t);
  std::uint64_t hash = 0;
  if (gathered && t.is_cpu() && t.is_contiguous()) {
    hash = hash_of_samples(t.data_ptr(), t.nbytes(), kSamples);
    const auto known = std::find_if(outputs_.rbegin(), outputs_.rend(), [&](const OpaqueOutput& output) {
      return output.hash == hash && output.value.scalar_type() == t.scalar_type() &&
             output.value.sizes() == t.sizes();
    });
    if (known != outputs_.rend()) {
      at::Tensor value = known->value;
      outputs_.push_back({place, std::move(value), hash});
      return;
    }
  }
  stays ? lend(place, t, hash) : keep(place, t, hash);
}

std::string KeptOutputs::call_in(const c10::StorageImpl* storage) {
  const auto at = lent_.find(storage);
  if (at == lent_.end()) return "";
  const Then then = at->second;
  lent_.erase(at);
  const auto is_there = [&](const OpaqueOutput& output) {
    return output.value.storage().unsafeGetStorageImpl() == storage;
  };
  const bool whole =
      storage->nbytes() >= then.bytes &&
      (!then.version.enabled() || then.version.current_version() == then.version_then) &&
      (!storage->device().is_cpu() || hash_of_samples(storage->data(), then.bytes) == then.samples);
  if (!whole) {
    const auto lost = std::erase_if(outputs_, is_there);
    return "memory that the program had was freed or overwritten unseen: " + std::to_string(lost) +
           " results of operations that can't be run again are not in the file";
  }
  std::map<const c10::TensorImpl*, at::Tensor> copies;
  for (OpaqueOutput& output : outputs_) {
    if (!is_there(output)) continue;
    at::Tensor& copy = copies[output.value.unsafeGetTensorImpl()];
    if (!copy.defined()) copy = output.value.clone(at::MemoryFormat::Contiguous);
    output.value = copy;
  }
  return "";
}

std::string KeptOutputs::call_in_all() {
  std::string lost;
  while (!lent_.empty())
    if (std::string each = call_in(lent_.begin()->first); !each.empty()) lost = std::move(each);
  return lost;
}

void KeptOutputs::sort() {
  std::stable_sort(outputs_.begin(), outputs_.end(),
                   [](const OpaqueOutput& a, const OpaqueOutput& b) { return a.place.op < b.place.op; });
}

void KeptOutputs::clear() {
  outputs_.clear();
  lent_.clear();
  bytes_ = on_device_ = 0;
}

}  // namespace nanquest::record
