/// TargetCopies: weights that the program computes with and no optimizer holds (a target network, a teacher),
/// and when the program copies something into them. A loss that is computed from them jumps then.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "probe/attach/program_tensors.h"
#include "probe/attach/weak_tensor.h"
#include "probe/observe/op_traits.h"

namespace nanquest::attach {

/// Tensors are not kept alive. One thread.
class TargetCopies {
 public:
  /// `tensors` must outlive this.
  explicit TargetCopies(const ProgramTensors& tensors) : tensors_(tensors) {}

  /// The program computes with these, and no optimizer is known to hold them.
  void computes_with(const std::vector<at::Tensor>& weights);
  /// An optimizer holds these.
  void are_held(const std::vector<at::Tensor>& weights);

  /// An op is about to run. It counts if it overwrites such weights outside of modules, backward passes and
  /// updates.
  void sees(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
  /// These were overwritten: for programs whose ops are not seen.
  void overwritten(const std::vector<at::Tensor>& weights);
  /// Whether such weights, and none that an optimizer holds, were overwritten since this was asked last. A
  /// checkpoint that is loaded in mid-run overwrites both.
  bool take();

 private:
  enum class Seen : std::uint8_t { nothing, target, held };
  void overwritten(const c10::StorageImpl* memory);

  const ProgramTensors& tensors_;
  std::unordered_map<const c10::StorageImpl*, WeakTensor> targets_;
  Seen seen_ = Seen::nothing;
};

}  // namespace nanquest::attach
