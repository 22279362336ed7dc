#include "probe/record/lent.h"

#include <algorithm>
#include <map>

#include "probe/record/slots.h"
#include "probe/record/step.h"

namespace nanquest::record {

void Lent::add(const at::Tensor& value) {
  const c10::Storage& storage = value.storage();
  const auto [at, fresh] = storages_.try_emplace(storage.unsafeGetStorageImpl());
  if (!fresh) return;
  at->second.bytes = storage.nbytes();
  if (storage.device().is_cpu()) at->second.samples = hash_of_samples(storage.data(), storage.nbytes());
  if (value.is_inference()) return;
  at->second.version = value.unsafeGetTensorImpl()->version_counter();
  at->second.version_then = at->second.version.current_version();
}

std::string Lent::call_in(const c10::StorageImpl* storage, std::vector<OpaqueOutput>& outputs) {
  const auto at = storages_.find(storage);
  if (at == storages_.end()) return "";
  const Then then = at->second;
  storages_.erase(at);
  const auto is_there = [&](const OpaqueOutput& output) {
    return output.value.storage().unsafeGetStorageImpl() == storage;
  };
  const bool whole =
      storage->nbytes() >= then.bytes &&
      (!then.version.enabled() || then.version.current_version() == then.version_then) &&
      (!storage->device().is_cpu() || hash_of_samples(storage->data(), then.bytes) == then.samples);
  if (!whole) {
    const auto lost = std::erase_if(outputs, is_there);
    return "memory that the program had was freed or overwritten unseen: " + std::to_string(lost) +
           " results of operations that can't be run again are not in the file";
  }
  std::map<const c10::TensorImpl*, at::Tensor> copies;
  for (OpaqueOutput& output : outputs) {
    if (!is_there(output)) continue;
    at::Tensor& copy = copies[output.value.unsafeGetTensorImpl()];
    if (!copy.defined()) copy = output.value.clone(at::MemoryFormat::Contiguous);
    output.value = copy;
  }
  return "";
}

std::string Lent::call_in_all(std::vector<OpaqueOutput>& outputs) {
  std::string lost;
  while (!storages_.empty())
    if (std::string each = call_in(storages_.begin()->first, outputs); !each.empty()) lost = std::move(each);
  return lost;
}

}  // namespace nanquest::record
