/// How far the values of a step reach, place by place. A place is what stays the same from step to step: an
/// operator in a module in a phase, and the format that it writes. A watched step shows all places; another
/// step shows the places asked for, at the cost of one scan of what they wrote.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "probe/record/step.h"
#include "probe/tensor/later_scans.h"

namespace nanquest::record {

struct RangePlace {
  const OpTraits* op = nullptr;
  const ModuleName* module = nullptr;  ///< null outside any module
  Phase phase = Phase::forward;
  DType type = DType::float32;
  friend bool operator==(const RangePlace&, const RangePlace&) = default;

  /// "aten::bmm in blocks.3.attention (forward, float16)"
  std::string text() const;
  /// For unordered containers.
  struct Hash {
    std::size_t operator()(const RangePlace& place) const;
  };
};

/// What all ops of a place wrote in one step.
struct SeenRange {
  RangePlace place;
  double amax = 0;  ///< largest finite |x|
  std::uint64_t elements = 0, zeros = 0, subnormal = 0, non_finite = 0;
};

/// What the ops of a watched step wrote, in the order in which the places come. Rows that still wait for a
/// device (ValueWatch::settle) count as 0.
std::vector<SeenRange> ranges_of(const Step& step);

/// Looks at places in steps that are not watched. Not thread-safe: the recorder locks.
class RangeWatch {
 public:
  /// The places to look at, from the next op on. Keep them few: each op is compared with all of them.
  void look_at(std::vector<RangePlace> places) { places_ = std::move(places); }
  /// A step begins: earlier results are forgotten.
  void begin_step() { seen_.clear(); }
  bool wants(const OpRecord& op) const;
  /// The op has run. Looks at what it returned and at the arguments that it wrote. On a device this is queued
  /// on the stream and read by `seen`.
  void saw(const OpRecord& op, c10::ArrayRef<const c10::IValue> outputs,
           const std::vector<at::Tensor>& written);
  /// What this step's ops wrote at those places so far. Waits for the device.
  const std::vector<SeenRange>& seen();

 private:
  void look(const OpRecord& op, const at::Tensor& tensor);
  SeenRange& of(const RangePlace& place);

  std::vector<RangePlace> places_;
  std::vector<SeenRange> seen_;
  std::vector<RangePlace> waiting_;  ///< by row of `later_`
  LaterScans later_;
};

}  // namespace nanquest::record
