/// host_data: what the host wrote into memory while the step ran, and whether it wrote anything there at all.
#pragma once

#include <string>

#include "replay/case/case.h"

namespace nanquest {

/// What is known of an op of the record that stands for a write by the host (kOpHostWrite).
enum class HostData {
  numbers,     ///< numbers of the program, as torch.tensor(list) makes of them
  first_read,  ///< not written: the memory held these very bytes when it was allocated
  open,        ///< what is bad there is the fill of deterministic mode, or the program wrote such NaN through
               ///< a view of NumPy's
  unknown,     ///< the record shows nothing of it
};

/// The elements with the bits with which PyTorch's deterministic mode fills new memory. Processor arithmetic
/// makes other NaNs. `t` has elements of 2, 4 or 8 bytes.
at::Tensor is_fill(const at::Tensor& t);

/// By `lift_fresh` on it before anything reads it: PyTorch calls that on a tensor that it has just filled with
/// numbers of Python, and on nothing else. Otherwise by comparing the hashes of the memory at its allocation
/// and at its first read, if the record has both, and by the fill of deterministic mode. `host_write` must be
/// such an op.
HostData host_data(const Case& c, OpId host_write);

/// "rows 12 to 15" of the first dimension, where `mask` is true; "" if these elements are no whole rows.
std::string rows_text(const at::Tensor& mask);

/// Whether the op returns uninitialised memory (`empty`).
bool hands_out_unwritten(const Case& c, OpId op);
/// The op that allocated the storage like this before op `before`; none if it wasn't allocated uninitialised.
OpId handed_out(const Case& c, SlotId slot, OpId before);

}  // namespace nanquest
