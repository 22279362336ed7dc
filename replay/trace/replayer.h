/// Replayer: runs a recorded step again, op by op through the dispatcher, without any model code.
///
///     Result<Replayer> r = Replayer::open("step-00000131.r0.h5");
///     RunResult same = r->run({});                                   // as recorded
///     RunResult wide = r->run({.precision = Precision::fp64});       // everything in fp64
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"

namespace nanquest {

class SnapshotReader;

/// What floating tensors are computed in. `bf16`: recorded fp16 becomes bf16 (range without precision),
/// `fp32`: fp16 and bf16 become fp32; `fp64`: every float becomes double.
enum class Precision : std::uint8_t { as_recorded, bf16, fp32, fp64 };

/// One thing changed in a run. Adding a kind of counterfactual means filling one of these.
struct TraceEdit {
  std::map<std::int32_t, Precision> op_precision;        ///< only these ops run in another precision
  std::map<std::string, Precision> module_precision;     ///< ops of this module path and everything below it, forward and backward
  /// Called with the rebuilt outside storage (as a 1-D tensor of the slot's dtype) before the run; may change it in place.
  std::map<std::int32_t, std::function<void(at::Tensor&)>> slot_edit;
  /// Called instead of (return true) or before (return false) the op; gets its arguments as an IValue stack.
  std::map<std::int32_t, std::function<bool(std::vector<c10::IValue>&)>> op_edit;
};

struct RunOptions {
  Precision precision = Precision::as_recorded;
  bool local = false;          ///< each op on its recorded inputs (taken from a bit-exact run), instead of on what the changed run produced
  bool scan = true;            ///< statistics of every written output
  bool hash = false;
  TraceEdit edit;
  std::int32_t stop_after = kNone;                 ///< last op to run; kNone = all
  /// Called after each op with its outputs and (at watched ops) may keep copies. May be empty.
  std::function<void(std::int32_t op, const std::vector<at::Tensor>& outputs)> on_op;
};

/// What one op did in a run.
struct OpOutcome {
  bool ran = false;
  bool substituted = false;       ///< opaque: recorded outputs were used
  std::string error;              ///< message if the op failed
  std::vector<StatsRow> written;  ///< one per entry of the op's `written` range
};

struct RunResult {
  std::vector<OpOutcome> ops;           ///< index = row of doc.ops
  std::int32_t first_inf = kNone;       ///< first op with finite inputs (as run) that wrote an Inf
  std::int32_t first_nan = kNone;       ///< first op that wrote a NaN out of non-NaN inputs
  std::vector<std::int32_t> births;     ///< all ops with finite inputs and non-finite written outputs
  bool loss_finite = true, gradients_finite = true;
  double loss = 0;
  int failed = 0, substituted = 0;
  double seconds = 0;
  /// Loss finite, every gradient finite and nothing failed.
  bool finite() const { return loss_finite && gradients_finite && failed == 0; }
};

class Replayer {
 public:
  static Result<Replayer> open(const std::string& path);
  Replayer(Replayer&&) noexcept;
  Replayer& operator=(Replayer&&) noexcept;
  ~Replayer();

  const SnapshotDoc& doc() const;
  const SnapshotReader& reader() const;

  /// One run of the whole step. Never throws; ops that fail are in the result.
  RunResult run(const RunOptions& options) const;

 private:
  struct Impl;
  explicit Replayer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Bit-for-bit comparison with the hash ladder (design §5).
struct VerifyResult {
  bool bit_exact = false;
  std::string basis;               ///< "every_output" or "survivors"
  std::int64_t outputs_compared = 0, mismatched = 0, opaque_ops = 0;
  std::int32_t first_mismatch = kNone;   ///< op
  std::int32_t failed_ops = 0;
  std::vector<std::string> differences;  ///< environment entries that differ from the recording's
  double seconds = 0;
};

/// Runs as recorded and compares every written output with its recorded hash.
VerifyResult verify(const Replayer& replayer);

}  // namespace nanquest
