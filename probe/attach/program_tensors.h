/// ProgramTensors: what the program's tensors are called, and the weights that an optimizer holds while it
/// writes. No tensor is kept alive but those, until `release`. On the thread that trains.
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
  std::vector<std::int64_t> numbers;  ///< as `add_parameter` gave them; below 0 for what it did not take
};

class ProgramTensors {
 public:
  /// Gate and history know parameters by the numbers that these give; both outlive this.
  ProgramTensors(GradientGate& gate, RunHistory& history) : gate_(gate), history_(history) {}

  /// Names a parameter. Its number.
  std::int64_t add_parameter(const std::string& name, const at::Tensor& tensor);
  /// Names a tensor of another kind: "buffer", "state" (an optimizer's), "scale" (a loss scaler's);
  /// "parameter": one that has its name got other memory.
  void put(const std::string& kind, const std::string& name, const at::Tensor& tensor);
  const Names& names() const { return names_; }
  /// How many weights, buffers and states there are.
  std::size_t size() const { return names_.parameters.size() + names_.buffers.size() + names_.states.size(); }

  /// Gate and history look at these weights from here on, until `release`.
  void bind(const Weights& weights);
  void release();
  /// Bytes that an update of these weights will overwrite, about; `device`: where they lie.
  std::uint64_t bytes_of_update(at::Device& device);
  /// Whether a weight lies in this memory.
  bool is_weight(const c10::StorageImpl* memory) const {
    return memory && weight_memory_.count(memory) > 0 && names_.parameters.any_in(memory);
  }
  /// Devices of the weights, and the CPU.
  const std::vector<at::Device>& devices();
  /// The name of a weight, buffer or state, or of the first that shares its memory, if that one alone is bad.
  std::string bad_in_memory_of(const std::string& name) const;

 private:
  GradientGate& gate_;
  RunHistory& history_;
  Names names_;
  std::vector<std::size_t> bound_;
  std::unordered_set<const c10::StorageImpl*> weight_memory_;               ///< addresses only
  std::pair<std::size_t, std::uint64_t> state_bytes_;                       ///< of so many states
  std::pair<std::size_t, std::vector<at::Device>> devices_{0, {at::kCPU}};  ///< of so many weights
};

}  // namespace nanquest::attach
