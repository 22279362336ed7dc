/// edits: what was put into A so far, as options of its run.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <vector>

#include "replay/trace/replayer.h"

namespace nanquest::diff {

class Edits {
 public:
  /// `precision`: what the whole run computes in.
  explicit Edits(Precision precision = Precision::as_recorded) : precision_(precision) {}

  /// The argument at `position` of `op` becomes `value`; a tensor only where the shape stays.
  void argument(OpId op, int position, c10::IValue value) {
    arguments_[op.row()][position] = std::move(value);
  }
  /// What `op` writes becomes these values; undefined entries stay.
  void written(OpId op, std::vector<at::Tensor> values) { written_[op.row()] = std::move(values); }
  /// After `op` has written, the elements that `row` of its doc shows of the memory of what it wrote as
  /// `entry` become those of `value`.
  void shown_after(OpId op, std::size_t entry, const TensorRow& row, at::Tensor value) {
    shown_.emplace(op.row(), Shown{row, std::move(value), entry});
  }
  /// The elements of an outside storage that `row` shows become those of `value` before the step.
  void outside(SlotId slot, const TensorRow& row, at::Tensor value) {
    outside_[slot.row()] = {row, std::move(value), 0};
  }

  /// The step with all of this. The options share nothing with this object.
  RunOptions options() const;

 private:
  struct Shown {
    TensorRow row;
    at::Tensor value;
    std::size_t entry = 0;
  };
  Precision precision_;
  std::map<std::int32_t, std::map<int, c10::IValue>> arguments_;
  std::map<std::int32_t, std::vector<at::Tensor>> written_;
  std::multimap<std::int32_t, Shown> shown_;
  std::map<std::int32_t, Shown> outside_;
};

/// `value` for a run of another step: tensors are copied, so that an op in place does not change it.
c10::IValue copied(const c10::IValue& value);

}  // namespace nanquest::diff
