/// EarlyCopies: memory of a device that every step overwrites one operator at a time (the running statistics
/// of fifty batch norms; weights and both moments in an update by lists) is copied in one or two launches
/// when the first of it is about to be overwritten. The last step tells which memory that is. One copy per
/// operator would be one launch each, and launches are slow on the host.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/record/device_copies.h"
#include "probe/record/slots.h"

namespace nanquest::record {

/// Not thread-safe. Throws what ATen throws.
class EarlyCopies {
 public:
  void begin_step();
  /// What this device memory, which `record` still refers to, holds before it is overwritten. Returns a copy
  /// that was made early, if no op wrote there in this step and the same stream is current as in the last
  /// step. Otherwise returns a copy that `copies.make()` will fill, together with all memory that the last
  /// step overwrote.
  at::Tensor of(const SlotRecord& record, DeviceCopies& copies);

 private:
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    c10::VariableVersion version;
    c10::Stream stream;              ///< the stream that overwrote it
    std::uint32_t version_then = 0;  ///< write counter when this step began
    at::Tensor copy;                 ///< made early in this step
    bool untouched() const;
  };
  Memory* find(const c10::StorageImpl* storage);

  std::vector<Memory> before_, now_;  // of the last step and of this one
  std::size_t next_ = 0;              // index into `before_`: probably asked for next
  bool begun_ = false;                // this step's early copies are made
};

}  // namespace nanquest::record
