/// EarlyCopies: memory of a device that every step overwrites one operator after the other (the running
/// statistics of fifty batch norms), copied in a launch or two when the first of it is about to be
/// overwritten. What that is the step before tells. A copy for each operator is a launch each, and hosts are
/// slow to launch.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/record/device_copies.h"
#include "probe/record/slots.h"

namespace nanquest::record {

/// Not for several threads at a time. Throws what ATen throws.
class EarlyCopies {
 public:
  void begin_step();
  /// What this memory of a device holds, which `record` still refers to, before it is overwritten: a copy
  /// that was made early, if nobody has written there in this step and the same stream is at work as in the
  /// last one; else a copy that `copies.make()` will make, with those of all that the last step overwrote.
  at::Tensor of(const SlotRecord& record, DeviceCopies& copies);

 private:
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    c10::VariableVersion version;
    c10::Stream stream;              ///< on which it was overwritten
    std::uint32_t version_then = 0;  ///< when this step began
    at::Tensor copy;                 ///< made early in this step
    bool untouched() const;
  };
  const Memory* find(const c10::StorageImpl* storage);

  std::vector<Memory> before_, now_;  // of the last step, of this one
  std::size_t next_ = 0;              // of `before_`: probably asked for next
  bool begun_ = false;                // something was overwritten in this step
};

}  // namespace nanquest::record
