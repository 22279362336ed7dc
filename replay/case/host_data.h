/// host_data: what the host put into memory while the step ran, and whether it put anything there at all.
#pragma once

#include "replay/case/case.h"

namespace nanquest {

/// What an op of the record that stands for a write by the host (kOpHostWrite) is known to be.
enum class HostData {
  numbers,     ///< numbers of the program, as torch.tensor(list) makes of them
  first_read,  ///< nobody wrote: the memory held these very bytes when it was handed out
  unknown,     ///< the record doesn't tell the two apart
};

/// By the hash of the memory as it was handed out and at its first read, where the record has both; without
/// it by its first reader: `lift_fresh` is what PyTorch calls on a tensor it has just filled with numbers of
/// Python, and on nothing else. `host_write` must be such an op.
HostData host_data(const Case& c, OpId host_write);

/// Whether the op hands out memory that it leaves as it is (`empty`).
bool hands_out_unwritten(const Case& c, OpId op);
/// The op that handed out the storage so before op `before`; none if it wasn't handed out unwritten.
OpId handed_out(const Case& c, SlotId slot, OpId before);

}  // namespace nanquest
