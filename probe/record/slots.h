/// Slots of one step: which storage is which, and what is known of the values that it had at first.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <vector>

namespace nanquest::record {

/// One storage of a step.
struct SlotRecord {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage{
      c10::intrusive_ptr<c10::StorageImpl>()};  ///< weak: keeps the address unique, not the memory
  std::uint64_t bytes = 0;                      ///< the most that it had during the step
  std::uint64_t first_bytes = 0;                ///< when it was first used
  at::ScalarType type = at::kByte;              ///< of the first tensor that used it
  c10::Device device = at::kCPU;
  std::uint32_t writer = UINT32_MAX;  ///< the op that wrote it last
  bool produced = false;
  bool initialised = true;      ///< false between an uninitialised producer and the first write
  bool read = false;            ///< an op has read its values: not only looked at it through a view
  bool unread = false;          ///< nothing had when all of it was overwritten: nobody needs to know them
  bool lost = false;            ///< its memory was freed before it could be copied
  bool changed_unseen = false;  ///< somebody wrote behind the trace's back before it was copied
  bool written_late = false;    ///< an op wrote to it after the step had ended
  bool late = false;            ///< a collective wrote it and nobody has read it since
  bool shared = false;  ///< others than LibTorch may write to it; its bytes had this hash when last seen
  std::uint64_t shared_hash = 0;
  bool of_model = false;   ///< an op inside a module wrote it, or one that was given such memory
  bool forgotten = false;  ///< its storage counts as another one from some op on

  // First values of an outside storage: either its copy, or a reference for as long as nobody writes.
  c10::Storage live;
  c10::VariableVersion version;  ///< of the tensor that read it first
  std::uint32_t version_then = 0;
  std::uint64_t checksum = 0;
  const std::byte* saved = nullptr;  ///< in the step's arena
  at::Tensor saved_on_device;
};

/// A hash of samples (of 8 bytes) spread over the bytes, both ends included: tells without reading everything
/// that a buffer was filled anew. A few changed elements can escape it.
std::uint64_t hash_of_samples(const void* data, std::size_t bytes, std::size_t samples = 64);

/// Whether the values of a storage that is only referred to are others than at first, as far as that can be
/// told.
bool changed_since(const SlotRecord& record);

/// Storages to slots, by address, in the order of first use. Emptied by a stamp; keeps its memory.
class SlotIndex {
 public:
  std::uint32_t size() const { return size_; }
  SlotRecord& operator[](std::uint32_t slot) { return records_[slot]; }
  const SlotRecord& operator[](std::uint32_t slot) const { return records_[slot]; }

  static constexpr std::uint32_t kMissing = UINT32_MAX;
  std::uint32_t find(const c10::StorageImpl* storage) const;
  /// A new slot for a storage that has none.
  std::uint32_t add(const at::Tensor& tensor, bool produced);
  /// The same for one of which everything is known already; without a storage nothing finds it.
  std::uint32_t add(SlotRecord record);
  /// Forgets all storages and lets go of all references.
  void clear();
  /// What is known of this storage ends here: it gets a new slot when it is used next.
  void forget(const c10::StorageImpl* storage);
  /// Lets go of storages that the step made itself: nobody asks for those after it.
  void forget_produced();
  std::size_t capacity_bytes() const {
    return places_.capacity() * sizeof(Place) + records_.capacity() * sizeof(SlotRecord);
  }

 private:
  struct Place {
    const c10::StorageImpl* storage;
    std::uint32_t stamp, slot;
  };
  std::size_t start(const c10::StorageImpl* storage) const {
    return (reinterpret_cast<std::uintptr_t>(storage) * 0x9E3779B97F4A7C15ull) >> shift_;
  }
  void insert(const c10::StorageImpl* storage, std::uint32_t slot);
  void grow();

  std::vector<Place> places_;        // a power of two of them; at most half are taken
  std::vector<SlotRecord> records_;  // the first size_ are in use
  std::uint32_t size_ = 0, stamp_ = 1;
  int shift_ = 64;
};

}  // namespace nanquest::record
