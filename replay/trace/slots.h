/// slots: the storages of one run.
///
/// A slot holds its elements in one dtype at a time: the recorded one, or the one that the run uses. Rows of
/// the trace (offset, sizes, strides in elements) stay true whatever that dtype is. That holds for memory
/// seen as complex numbers and as their parts too ("paired"): both grow together. Slots used as several other
/// dtypes ("mixed") keep their recorded bytes; what is stored into them is rounded.
///
/// Functions throw std::runtime_error (or c10::Error) with a sentence; replay turns it into the op's error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "probe/snapshot/model.h"
#include "replay/trace/plan.h"
#include "replay/trace/replayer.h"

namespace nanquest::trace {

/// Returns a stored tensor by path; throws if there is none.
using DataSource = std::function<at::Tensor(const std::string&)>;

class SlotStore {
 public:
  /// `doc`, `plan` and everything that `source` uses must outlive the store. `outside` is the type to which
  /// outside storages are converted at first use. Memory that was on a device is put on `device`.
  SlotStore(const SnapshotDoc& doc, const TracePlan& plan, DataSource source, Precision outside,
            c10::Device device = c10::Device(c10::kCPU));
  c10::Device device() const { return device_; }

  /// Edits of outside storages; call before anything is read.
  void set_edits(const std::map<std::int32_t, std::function<void(at::Tensor&)>>* edits) { edits_ = edits; }

  /// The same slots for another run that continues from here, without its edits. Memory is shared until one
  /// of the two writes it.
  SlotStore fork();
  /// Makes the row's memory this store's alone, so that it may be written in place. Does nothing for a slot
  /// without memory.
  void own(TensorId row);
  /// Bytes of all memory held now.
  std::uint64_t bytes() const;

  /// True if the row's slot has a storage now, or can get one from the snapshot.
  bool available(TensorId row) const;
  /// dtype that the row's elements are in now.
  at::ScalarType type(TensorId row);
  /// The row as a view of its slot, in its present dtype. Row flags (conj, neg, wrapped number) are set.
  at::Tensor view(TensorId row);
  /// The row in dtype `want`: a view if it has that dtype, otherwise a copy.
  at::Tensor read(TensorId row, at::ScalarType want);
  /// Makes the slot of `row` hold its elements in a dtype that includes `want`. Mixed slots stay.
  void widen(TensorId row, at::ScalarType want);
  /// `tensor` was returned for `row`: gives an empty slot its storage (adopted if strides and dtype fit,
  /// otherwise copied with the recorded strides) or, if the slot has another storage, copies the values into
  /// it. Scratch in one dimension may have another size than when it was recorded.
  void bind(TensorId row, const at::Tensor& tensor);
  /// Copies values into the row's elements; a tensor of another shape replaces the slot (resized out=
  /// arguments).
  void store(TensorId row, const at::Tensor& tensor);
  /// Gives the slot zeroed memory if it has none: for arguments that are only written.
  void allocate(TensorId row);
  /// True if `tensor` uses the storage of the row's slot.
  bool holds(TensorId row, const at::Tensor& tensor) const;
  /// Frees a slot that is not needed any more.
  void release(SlotId slot);

  const TensorRow& row(TensorId id) const { return get(doc_, id); }

 private:
  struct State {
    c10::Storage storage;
    at::ScalarType type = at::kByte;
    bool gone = false;     ///< released: must not be loaded again
    bool shared = false;   ///< another store, or the stored tensor, shares the memory
    bool resized = false;  ///< scratch of another size than the recorded one: its row is all of it
  };
  State& state(TensorId row);
  SlotId slot_of(TensorId row) const;
  c10::Device device_of(SlotId slot) const;
  void load(SlotId slot);
  /// The dtype of the slot's elements (of their parts, if it is used both ways) from the start.
  at::ScalarType kept_type(SlotId slot) const;
  /// The dtype of the row while its slot is kept in `kept`.
  at::ScalarType row_type(SlotId slot, TensorId row, at::ScalarType kept) const;
  std::int64_t elements(SlotId slot, const TensorRow& row) const;
  at::Tensor flat(const State& s, at::ScalarType type) const;

  const SnapshotDoc& doc_;
  const TracePlan& plan_;
  DataSource source_;
  Precision outside_;
  c10::Device device_;
  const std::map<std::int32_t, std::function<void(at::Tensor&)>>* edits_ = nullptr;
  PerRow<Slot, State> states_;
};

/// End of a row's last element in bytes, from its strides; throws on negative or absurd numbers.
std::int64_t extent_bytes(const TensorRow& row, std::size_t element_size);

}  // namespace nanquest::trace
