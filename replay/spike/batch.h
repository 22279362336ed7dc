/// batch: what came into a step with its batch, and the same step with all of it, or some samples, from the
/// step before (the file's healthy twin, probe/record/twin.h).
///
/// Sample k of a tensor is row k of its first dimension, or, for a tensor that holds a whole number of values
/// for each sample in a row (targets that were flattened), the k-th part.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/blame/twin.h"
#include "replay/lab/lab.h"

namespace nanquest {

class StepBatch {
 public:
  /// `twin` must outlive it.
  explicit StepBatch(const Lab& lab, const TwinRun& twin);

  /// Whether the file has the batch of the step before, for all of the step.
  bool has_before() const { return has_before_; }
  /// Number of that step.
  std::int64_t step_before() const { return twin_.step(); }
  /// Samples that can be exchanged one by one; 0 if they are not known.
  std::int64_t samples() const { return samples_; }

  /// The step on the batch of the step before. Only if has_before.
  std::optional<RunOptions> all_before() const;
  /// Samples replaced by those in their places in the step before. Only if samples() > 0.
  RunOptions before(const std::vector<std::int64_t>& samples) const;
  /// Every sample is a copy of `sample`: loss and gradients are those of this one. Only if samples() > 0.
  RunOptions alone(std::int64_t sample) const;

 private:
  /// A tensor of the batch: elements [offset, offset + count) of the memory of `slot`, sample after sample.
  struct Part {
    std::int32_t slot = kNone;
    std::int64_t offset = 0, count = 0, first_dimension = 0;
    std::size_t dimensions = 0;
    at::Tensor values_before;  ///< all of that memory
  };
  void find_parts(const Lab& lab);
  void count_samples(const SnapshotDoc& doc);

  const TwinRun& twin_;
  bool has_before_ = false;
  std::int64_t samples_ = 0;
  std::vector<Part> parts_;
};

}  // namespace nanquest
