/// Lent: values that a step keeps without copying, in the program's own memory, until something writes there.
///
/// Results of a collective or of a random op on a device cannot be computed again. Copying them is expensive:
/// in a step that is spread over processes (weights are gathered in each step) it would take as long as
/// everything else together, and on a device each copy is a launch. Memory that the step itself allocated,
/// and that the program frees when the step is over, is therefore held instead of copied.
///
///     step.lent.add(value);                      // `value` goes into step.opaque
///     step.lent.call_in(storage, step.opaque);   // before something writes to that storage
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace nanquest::record {

struct OpaqueOutput;

class Lent {
 public:
  /// Whether this tensor's storage holds lent values, which must be copied before they change.
  void add(const at::Tensor& value);
  bool empty() const { return storages_.empty(); }
  void clear() { storages_.clear(); }
  /// Replaces the lent values in this storage by copies; each memory is copied once. Values that were freed,
  /// or overwritten unnoticed, are removed from `outputs`. Returns what was lost in words, or "".
  std::string call_in(const c10::StorageImpl* storage, std::vector<OpaqueOutput>& outputs);
  /// The same for all lent values.
  std::string call_in_all(std::vector<OpaqueOutput>& outputs);

 private:
  struct Then {
    std::size_t bytes = 0;
    std::uint64_t samples = 0;       // CPU memory only
    c10::VariableVersion version;    // version counter of the value, if it has one
    std::uint32_t version_then = 0;  // what it was when lent
  };
  std::unordered_map<const c10::StorageImpl*, Then> storages_;
};

}  // namespace nanquest::record
