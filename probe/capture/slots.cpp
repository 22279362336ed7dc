#include "probe/capture/slots.h"

#include "probe/tensor/tensor_scan.h"

namespace nanquest {

void SlotTable::name(const at::Tensor& tensor, StorageName name) {
  names_.emplace(tensor.storage().unsafeGetStorageImpl(), std::move(name));
}

void SlotTable::forget(const at::Tensor& tensor) {
  slots_.erase(tensor.storage().unsafeGetStorageImpl());
}

std::int32_t SlotTable::find(const at::Tensor& tensor) const {
  const auto it = slots_.find(tensor.storage().unsafeGetStorageImpl());
  return it == slots_.end() ? kNone : it->second;
}

std::int32_t SlotTable::add(const at::Tensor& tensor, bool produced) {
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto id = static_cast<std::int32_t>(rows_.size());
  Slot row;
  row.bytes = tensor.storage().nbytes();
  row.dtype = dtype_of(tensor.scalar_type()).value_or(DType::uint8);
  row.device = tensor.device().str();
  row.origin = produced ? SlotOrigin::produced : SlotOrigin::external;
  if (!produced) {
    if (const auto it = names_.find(storage); it != names_.end()) {
      row.origin = it->second.origin;
      row.name = it->second.name;
      row.data = it->second.data;
    }
  }
  rows_.push_back(std::move(row));
  states_.emplace_back(tensor.storage().getWeakStorageImpl());
  slots_.emplace(storage, id);
  return id;
}

}  // namespace nanquest
