/// detect: names the first Inf and the first NaN of a run, with their details.
///
/// LibTorch's anomaly mode looks at gradients only, sees NaN only and names a node. This looks at every
/// tensor that every op of forward, backward and optimizer wrote (RunResult), and follows the bad values back
/// to their origin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/trace/replayer.h"

namespace nanquest {

/// One op that wrote something non-finite.
struct Anomaly {
  std::int32_t op = kNone;  ///< row of doc.ops
  std::string name;         ///< "aten::div" with overload
  std::string kind;         ///< "inf", "nan" or "mixed"
  Phase phase = Phase::forward;
  std::string module;               ///< path; of the forward op if the op itself has none
  std::string node;                 ///< backward node, "" outside backward
  std::int32_t forward_op = kNone;  ///< for backward: the forward op that it differentiates
  std::string forward_name;         ///< its name, "" if none
  std::uint64_t count = 0;          ///< bad elements
  std::int64_t first = -1;          ///< logical index of the first one
  bool inputs_finite = false;       ///< a birth: its inputs were finite
  /// Ops that passed the bad values on, from the origin to this op's producer; empty for a birth.
  std::vector<std::int32_t> came_from;
  /// Name of the outside value that was bad from the start ("batch.x"), "" if an op made it.
  std::string outside;
};

struct Detection {
  std::int32_t ops_checked = 0;  ///< ops that ran and had something to check
  std::int64_t outputs_checked = 0;
  Anomaly first_inf, first_nan;  ///< op is kNone if there was none
  std::vector<Anomaly> births;   ///< all, in order
  bool any() const { return first_inf.op != kNone || first_nan.op != kNone; }
};

/// Explains a run that was made with `scan` on.
Detection detect(const SnapshotDoc& doc, const RunResult& run);

/// One sentence: "first Inf: aten::mul.Tensor (op 12, backward, MulBackward0 of aten::mul.Tensor in
/// blocks.1.mlp): …".
std::string describe(const SnapshotDoc& doc, const Anomaly& anomaly);

}  // namespace nanquest
