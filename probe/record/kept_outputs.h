/// KeptOutputs: results of a step's ops that can't be computed again: copies, or lent.
///
/// Results of a collective or of a random op on a device cannot be computed again. Copying them is expensive:
/// in a step that is spread over processes (weights are gathered in each step) it would take as long as
/// everything else together, and on a device each copy is a launch. Memory that the step itself allocated,
/// and that the program frees when the step is over, is therefore lent: held instead of copied, until
/// something writes there.
///
///     step.kept.lend({op, 0, false}, value);   // or keep(): a copy
///     step.kept.call_in(storage);              // before something writes to that storage
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace nanquest::record {

/// Which output of an op is kept: its number among the returned values, or in the op's written range.
struct OutputPlace {
  std::uint32_t op, number;
  bool written;  ///< a written argument
};

/// A result of an op that may not be repeatable: a copy, or lent.
struct OpaqueOutput {
  OutputPlace place;
  at::Tensor value;
  std::uint64_t hash = 0;  ///< hash of samples of its bytes, for values that may repeat; otherwise 0
};

class KeptOutputs {
 public:
  /// Keeps a copy. On a device it is queued on the stream: nothing waits for it.
  void keep(OutputPlace place, const at::Tensor& t, std::uint64_t hash = 0);
  /// Holds the memory itself, which `call_in` copies before it changes.
  void lend(OutputPlace place, const at::Tensor& t, std::uint64_t hash = 0);
  /// Keeps what a collective delivered. Sharded weights are gathered for the forward pass and again for the
  /// backward pass; one value is held for both. `stays`: the step allocated this memory, so the program frees
  /// it when done.
  void keep_brought(OutputPlace place, const at::Tensor& t, bool gathered, bool stays);
  /// Something is about to write to this storage: the values lent in it are replaced by copies; each memory is
  /// copied once. Values that were freed, or overwritten unnoticed, are removed. Returns what was lost in
  /// words, or "".
  std::string call_in(const c10::StorageImpl* storage);
  /// The same for all lent values.
  std::string call_in_all();
  /// By their ops: ops of several threads do not end in the order in which they begin.
  void sort();
  void clear();

  const std::vector<OpaqueOutput>& outputs() const { return outputs_; }
  /// Bytes of the outputs, in all and in a device's memory.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t on_device() const { return on_device_; }

 private:
  struct Then {
    std::size_t bytes = 0;
    std::uint64_t samples = 0;       // CPU memory only
    c10::VariableVersion version;    // version counter of the value, if it has one
    std::uint32_t version_then = 0;  // what it was when lent
  };
  void add(OutputPlace place, const at::Tensor& value, std::uint64_t hash);

  std::vector<OpaqueOutput> outputs_;
  std::unordered_map<const c10::StorageImpl*, Then> lent_;
  std::uint64_t bytes_ = 0, on_device_ = 0;
};

}  // namespace nanquest::record
