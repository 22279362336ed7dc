/// ProgramTensors: the names of the program's tensors, and the weights that an optimizer holds while it
/// writes. Only these are kept alive, until `release`. Use on the thread that trains.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "probe/attach/rounds.h"
#include "probe/step/gate.h"
#include "probe/step/run_history.h"

namespace nanquest::attach {

/// The weights that an optimizer is about to write. They are held until `after_update` only.
struct Weights {
  std::vector<at::Tensor> tensors;
  std::vector<std::int64_t> numbers;  ///< as returned by `add_parameter`; below 0 if it was not accepted
};

class ProgramTensors {
 public:
  /// Gate and history know parameters by their own numbers for them; both must outlive this.
  ProgramTensors(GradientGate& gate, RunHistory& history) : gate_(gate), history_(history) {}

  /// Names a parameter. Returns its number.
  std::int64_t add_parameter(const std::string& name, const at::Tensor& tensor);
  /// Names a tensor of another kind: "buffer", "state" (an optimizer's), "scale" (a loss scaler's), "kept";
  /// "parameter": a named parameter has moved to other memory.
  void put(const std::string& kind, const std::string& name, const at::Tensor& tensor);
  const Names& names() const { return names_; }
  /// How many tensors live on from step to step, as far as they have names.
  std::size_t size() const {
    return names_.parameters.size() + names_.buffers.size() + names_.states.size() + names_.kept.size();
  }

  /// Gate and history look at these weights from now on, until `release`.
  void bind(const Weights& weights);
  void release();
  /// These weights have a new optimizer.
  void renew();
  /// A number for the bound weights and their optimizer: another one for other weights, also of a model that
  /// was built again under the same names, and for a new optimizer.
  std::uint64_t trained() const;
  /// About how many bytes an update of these weights will overwrite; `device`: where they are.
  std::uint64_t bytes_of_update(at::Device& device);
  /// Whether a weight uses this memory.
  bool is_weight(const c10::StorageImpl* memory) const {
    return memory && weight_memory_.count(memory) > 0 && names_.parameters.any_in(memory);
  }
  /// Devices of the weights, and the CPU.
  const std::vector<at::Device>& devices();
  /// Whether weights lie on another device than the CPU.
  bool on_device() { return devices().size() > 1; }
  /// The name of a weight, buffer or state, or of the first one that shares its memory if only that one is
  /// bad.
  std::string bad_in_memory_of(const std::string& name) const;

 private:
  void remember(const at::Tensor& weight) { weight_memory_.insert(weight.storage().unsafeGetStorageImpl()); }

  GradientGate& gate_;
  RunHistory& history_;
  Names names_;
  std::vector<std::size_t> bound_;
  std::vector<std::uint64_t> times_;  ///< by parameter: how often it was built, or got an optimizer
  std::unordered_set<const c10::StorageImpl*> weight_memory_;               ///< addresses only
  std::pair<std::size_t, std::uint64_t> state_bytes_;                       ///< for this many states
  std::pair<std::size_t, std::vector<at::Device>> devices_{0, {at::kCPU}};  ///< for this many weights
};

}  // namespace nanquest::attach
