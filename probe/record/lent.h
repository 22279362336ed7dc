/// Lent: values that a step keeps where the program has them, for as long as nobody writes there.
///
/// What a collective brought, or a device drew, can't be computed again. Copying it would cost a step that is
/// spread over processes as much time as everything else together (the weights are gathered in each), and a
/// step on a device a launch each. Memory that was made in the step, and that the program lets go of when it
/// is done, is held instead.
///
///     step.lent.add(value);                      // `value` goes into step.opaque
///     step.lent.call_in(storage, step.opaque);   // before somebody writes to that storage
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
  /// Any values of this tensor's storage are to be copied before they change.
  void add(const at::Tensor& value);
  bool empty() const { return storages_.empty(); }
  void clear() { storages_.clear(); }
  /// The values in this storage become copies, each memory copied once; nothing if none are there. Those that
  /// are gone, or that somebody wrote to unseen, are taken out of `outputs`. Returns what was lost, in words,
  /// "" if nothing was.
  std::string call_in(const c10::StorageImpl* storage, std::vector<OpaqueOutput>& outputs);
  /// The same of all of them.
  std::string call_in_all(std::vector<OpaqueOutput>& outputs);

 private:
  struct Then {
    std::size_t bytes = 0;
    std::uint64_t samples = 0;       // a CPU's only
    c10::VariableVersion version;    // of the value, if it has one …
    std::uint32_t version_then = 0;  // … as it was
  };
  std::unordered_map<const c10::StorageImpl*, Then> storages_;
};

}  // namespace nanquest::record
