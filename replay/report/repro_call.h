/// repro_call: one op of the step as it was called, and its results, both as recorded. Private to
/// replay/report.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "probe/base/result.h"
#include "replay/case/case.h"

namespace nanquest {

/// The recorded content of one tensor that the op made.
struct RecordedOutput {
  bool looked_at = true;  ///< false: working memory, or undefined
  std::int64_t nan = 0, inf = 0;
  std::int64_t bad_here = 0;  ///< elements that are not finite when the op is run here
  /// CRC-32 of its contiguous bytes; nothing if the op gives other bits here than were recorded.
  std::optional<std::uint32_t> checksum = {};
};

struct RecordedCall {
  c10::OperatorHandle handle;
  std::vector<c10::IValue> arguments = {};  ///< views of common memory where the recorded ones were
  std::vector<bool> written = {};           ///< per argument: the op writes it
  /// Arguments that are results, besides those that it returns: for ops that return nothing all that they
  /// write.
  std::vector<std::size_t> results = {};
  at::Tensor generator = {};                 ///< state before the op; undefined if it draws no random numbers
  std::vector<RecordedOutput> outputs = {};  ///< what it returned, lists opened, then `results`
  std::vector<at::ScalarType> wider = {};    ///< wider formats; none if it draws random numbers

  bool bad() const;       ///< the recorded outputs hold something non-finite
  bool bad_here() const;  ///< the results of the op here do
};

/// Runs the step up to `op`, and the op itself alone. Fails with `unsupported` if it can't be run again.
Result<RecordedCall> record_call(const Case& c, std::int32_t op);

/// The forward op that a backward op belongs to, with the gradients that its node received.
struct Differentiated {
  std::int32_t op = kNone;
  RecordedCall call;
  std::vector<at::Tensor> gradients;  ///< one for each returned tensor, undefined if not found
};

/// Nothing if `op` is no part of a derivative, or if what it differentiates is unknown or can't be run again.
std::optional<Differentiated> differentiated_by(const Case& c, std::int32_t op);

}  // namespace nanquest
