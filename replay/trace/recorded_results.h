/// recorded_results: what the file holds of the results of an op that can't be executed again.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "replay/trace/slots.h"

namespace nanquest::trace {

class RecordedResults {
 public:
  /// `doc` and everything that `source` uses must outlive it.
  RecordedResults(const SnapshotDoc& doc, DataSource source) : doc_(doc), source_(std::move(source)) {}

  /// Values of a row right after the op.
  struct Value {
    TensorId row;
    at::Tensor tensor;
  };
  /// All that are stored of the op, of `plan`; none for most ops. Throws if the bytes don't fit the row, or
  /// if those of a write by the host are missing.
  std::vector<Value> of(OpId op, const OpPlan& plan) const;

 private:
  at::Tensor read(TensorId row, const std::string& path) const;

  const SnapshotDoc& doc_;
  DataSource source_;
};

}  // namespace nanquest::trace
