/// TwinBatch: what the last healthy step read from outside, kept for comparison with a later bad step.
///
///     twin.keep(step, 1999, names);          // step 1999 was finite: copies of its batch, targets, masks, …
///     …                                      // the next step is bad
///     const TwinMatch match = twin.match(bad, phases);   // how far both ran the same ops on the same places
///
/// "Batch" here means everything that a step reads from outside and that is not kept from step to step: no
/// weight, buffer, optimizer state or gradient. These are known by name, or, without a name, because they are
/// the same storage as in the step before and are written by the step. Copies are made while the step's
/// values are still alive, into memory that the next healthy step reuses; unchanged values are not copied
/// again. Steps that read more than `kTwinBytes` have no twin.
#pragma once

#include <c10/core/Storage.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "probe/record/step.h"

namespace nanquest::record {

/// The most that is copied of one step.
inline constexpr std::uint64_t kTwinBytes = std::uint64_t{64} << 20;

using Addresses = std::unordered_set<const c10::StorageImpl*>;

/// What the memory is used for when a step ends.
struct TwinNames {
  Addresses state;  ///< weights, buffers, optimizer states, gradients, loss scales
  Addresses batch;  ///< what the program named as its batch
};

/// A value as it was when a healthy step read it.
struct TwinCopy {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage{
      c10::intrusive_ptr<c10::StorageImpl>()};  ///< weak: keeps the address unique, not the memory
  bool known = false;                           ///< its bytes are stored here
  bool state = false;                           ///< it is kept from step to step: nothing is copied
  std::uint64_t bytes = 0;
  std::uint32_t version = 0;  ///< of the copied storage, and its checksum: shows whether a copy is still
                              ///< valid
  std::uint64_t checksum = 0;
  bool counted = false;  ///< it had a version
  std::unique_ptr<std::byte[]> room;
  std::size_t capacity = 0;
  at::Tensor on_device;

  bool in(const c10::StorageImpl* other) const { return storage._unsafe_get_target() == other && other; }
};

/// How a step compares with its twin.
struct TwinMatch {
  static constexpr std::uint32_t kNever = UINT32_MAX;
  struct Place {
    std::uint32_t first = kNever;  ///< the first op that uses the slot
    std::int64_t shift = 0;        ///< bytes by which this step reads further on in its storage
    bool number = false;           ///< a number of the program: the same in both, or the optimizer's own
  };
  std::uint32_t ops = 0;        ///< this many ops, from the first, are alike
  std::vector<Place> places;    ///< per slot
  std::size_t host_writes = 0;  ///< of the above
};

class TwinBatch {
 public:
  /// Keeps what the step has read from outside so far. `number` is the program's. False if it is too much;
  /// then nothing is kept. Throws std::bad_alloc.
  bool keep(Step& step, std::int64_t number, const TwinNames& names);
  void forget();
  /// Another step is about to be recorded into `step`: its records are kept here.
  void take_records(Step& step);
  /// The step's number as the recorder counts (Step::number); below 0 if there is no twin.
  std::int64_t round() const { return round_; }
  /// … and as the program counts.
  std::int64_t step() const { return number_; }

  /// Compares the steps op by op, up to the first op that differs, or that ran on other places or numbers.
  /// Number arguments of the optimizer's ops may differ (`is_update` of an op's index): the learning rate and
  /// the time change.
  TwinMatch match(const Step& step, const std::function<bool(std::uint32_t)>& is_update) const;

  /// The copy of a slot; null if it is no value from outside, or came later.
  const TwinCopy* value(std::uint32_t slot) const;
  const TwinCopy* host_write(std::size_t index) const {
    return index < host_writes_ ? &hosts_[index] : nullptr;
  }
  std::size_t memory() const {
    return held_ + own_ops_.capacity() * sizeof(OpRecord) + own_words_.capacity_bytes();
  }

 private:
  const std::vector<OpRecord>& ops() const { return owner_ ? owner_->ops : own_ops_; }
  const Words& words() const { return owner_ ? owner_->words : own_words_; }

  std::int64_t round_ = -1, number_ = -1;
  std::uint32_t op_count_ = 0;
  std::size_t host_writes_ = 0, held_ = 0;
  Step* owner_ = nullptr;  ///< whose records the twin uses; null: its own
  std::vector<OpRecord> own_ops_;
  Words own_words_;
  std::vector<std::uint32_t> slots_;  ///< those from outside, in order
  std::vector<TwinCopy> values_,
      hosts_;  ///< how many of these and of the host writes are used; the rest is spare room
};

/// The copy's bytes on the host, as a 1-D tensor of bytes that shares them; undefined if it has none.
at::Tensor bytes_of(const TwinCopy& copy);

}  // namespace nanquest::record
