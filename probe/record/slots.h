/// Slots of one step: which storage is which, and what is known of its first values.
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
  std::uint64_t bytes = 0;                      ///< its largest size during the step
  std::uint64_t first_bytes = 0;                ///< when it was first used
  at::ScalarType type = at::kByte;              ///< of the first tensor that used it
  c10::Device device = at::kCPU;
  std::uint32_t writer = UINT32_MAX;  ///< the op that wrote it last
  bool produced = false;
  bool initialised = true;      ///< false between an uninitialised producer and the first write
  bool read = false;            ///< an op has read its values, not only made a view of it
  bool unread = false;          ///< it was overwritten completely before anything read it: its first values
                                ///< are not needed
  bool lost = false;            ///< freed before it could be copied
  bool changed_unseen = false;  ///< overwritten, without an op, before it could be copied
  bool written_late = false;    ///< an op wrote to it after the step had ended
  bool put_back = false;        ///< a device may have put its values back, without an op, after the last one
  bool late = false;            ///< a collective wrote it and nothing has read it since
  bool shared = false;          ///< may be written without an op; its bytes had this hash when last seen
  std::uint64_t shared_hash = 0;
  bool of_model = false;   ///< written by an op inside a module, or by one that read such memory
  bool forgotten = false;  ///< from some op on its storage counts as another one

  // First values of an outside storage: a copy, or a reference until something writes to it.
  c10::Storage live;
  c10::VariableVersion version;  ///< type of the tensor that first read it
  std::uint32_t version_then = 0;
  std::uint64_t checksum = 0;
  const std::byte* saved = nullptr;  ///< in the step's arena
  at::Tensor saved_on_device;
};

/// A hash of samples (8 bytes each) spread over the bytes, including both ends. Shows without reading
/// everything that a buffer was filled again. It can miss a change of a few elements.
std::uint64_t hash_of_samples(const void* data, std::size_t bytes, std::size_t samples = 64);

/// Whether the values of a storage that is only referred to have changed, as far as that can be told.
bool changed_since(const SlotRecord& record);

/// Maps storages to slots, by address, in the order of first use. Clearing it keeps its memory.
class SlotIndex {
 public:
  std::uint32_t size() const { return size_; }
  SlotRecord& operator[](std::uint32_t slot) { return records_[slot]; }
  const SlotRecord& operator[](std::uint32_t slot) const { return records_[slot]; }

  static constexpr std::uint32_t kMissing = UINT32_MAX;
  std::uint32_t find(const c10::StorageImpl* storage) const;
  /// A new slot for a storage that has none.
  std::uint32_t add(const at::Tensor& tensor, bool produced);
  /// The same for a slot of which everything is known already. Without a storage, no lookup finds it.
  std::uint32_t add(SlotRecord record);
  /// Forgets all storages and drops all references.
  void clear();
  /// Ends what is known of this storage: it gets a new slot at its next use.
  void forget(const c10::StorageImpl* storage);
  /// Drops storages that the step allocated itself, unless op `kept_from` or a later one wrote to them:
  /// nothing asks for them later.
  void forget_produced(std::uint32_t kept_from);
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

  std::vector<Place> places_;        // a power of two; at most half are used
  std::vector<SlotRecord> records_;  // the first size_ are in use
  std::uint32_t size_ = 0, stamp_ = 1;
  int shift_ = 64;
};

}  // namespace nanquest::record
