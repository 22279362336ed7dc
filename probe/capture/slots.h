/// Slots: which storage is which, for the length of one recording.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// What a storage is called, for storages that the step was told about.
struct StorageName {
  SlotOrigin origin = SlotOrigin::external;
  std::string name;
  std::string data;  ///< path that already holds exactly this storage's bytes, "" if none does
};

/// Bookkeeping of one slot beside its table row.
struct SlotState {
  explicit SlotState(c10::weak_intrusive_ptr<c10::StorageImpl> of) : storage(std::move(of)) {}
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;  ///< weak: keeps the address unique, not the memory
  std::uint32_t generation = 0;                       ///< grows with each dispatched write
  std::int32_t writer = kNone;                        ///< the op that wrote it last
  bool initialised = true;  ///< false between an uninitialised producer and the first write
  struct Known {            ///< statistics of a view of it, valid for one generation
    std::uint32_t generation;
    std::int32_t stats;
    DType dtype;
    std::int64_t offset;
    std::vector<std::int64_t> sizes, strides;
    bool contiguous, dense;  ///< in logical order; in any order, without gaps and overlaps
  };
  std::vector<Known> known;
  /// What a collective wrote, or will have written when somebody has waited for it.
  struct Late {
    std::int32_t op, row;
    std::string path;  ///< of its values in the file
  };
  std::vector<Late> late;
  c10::Storage late_storage;
  std::uint64_t shared_hash = 0;  ///< of memory that is shared with others, as it was last seen
  bool shared = false;
  c10::Storage live;  ///< lazy recording: an outside storage whose first values have not been copied yet
  at::Tensor saved;   ///< its first values, once copied
  std::vector<std::int32_t> first_rows;  ///< rows with statistics of views of those values, one for each view
};

/// Maps storages to rows of SnapshotDoc::slots. Not thread-safe: its owner locks.
class SlotTable {
 public:
  explicit SlotTable(std::vector<Slot>& rows) : rows_(rows) {}

  /// Announces a storage by name before the step runs.
  void name(const at::Tensor& tensor, StorageName name);

  /// The tensor's storage gets a new slot when it is used next: what the trace knew of it so far ends here.
  void forget(const at::Tensor& tensor);

  /// The slot of the tensor's storage, kNone if it has none yet.
  std::int32_t find(const at::Tensor& tensor) const;

  /// Makes a slot for a storage that has none. `produced`: an op of the trace made it.
  std::int32_t add(const at::Tensor& tensor, bool produced);

  SlotState& state(std::int32_t slot) { return states_[static_cast<std::size_t>(slot)]; }
  const SlotState& state(std::int32_t slot) const { return states_[static_cast<std::size_t>(slot)]; }
  std::size_t size() const { return states_.size(); }

 private:
  std::vector<Slot>& rows_;
  std::vector<SlotState> states_;
  std::unordered_map<const c10::StorageImpl*, std::int32_t> slots_;
  std::unordered_map<const c10::StorageImpl*, StorageName> names_;
};

}  // namespace nanquest
