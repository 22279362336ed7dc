/// rewind: the root of an incident, tried on the steps of its file's tape only.
///
///     Result<Rewind> rewind = Rewind::open(file);              // the tape, checked
///     const VerifyResult same = rewind->verify(device);        // unchanged it must reach the incident
///     Rehearsal r = rewind->try_changes({}, device, say);      // only then: one change at a time, placebos
///
/// A run that does not go bad at the incident goes on with the tape's steps again (once_more.h), as far as
/// there are any: a tape has nothing else to show after the failure. This can't verify a cure for the run,
/// and with fewer than kOutlive such steps nothing is tried. The one rule of replay/verdict/rehearsal.h
/// decides what cures, so verdicts and the viewer show it like any rehearsal.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/reader.h"
#include "probe/snapshot/tape.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/rehearsal.h"

namespace nanquest {

struct RewindPlan {
  std::vector<std::string> changes = {};  ///< as parse_change; empty: usual_changes
  std::int64_t placebos = 8;
  std::int64_t steps = kVerified;  ///< steps after the incident, at most
  std::string growth = {};         ///< Rehearsal::growth
};

class Rewind {
 public:
  /// Reads the tape and all its values. `bad_file` if there is none, or it is invalid.
  static Result<Rewind> open(const SnapshotReader& file);

  /// The tape's tables without the trace, the incident's step last.
  const std::vector<TapeStep>& steps() const { return tape_.steps; }
  const SnapshotDoc& trace() const { return tape_.trace; }
  /// All of it, and its values, as TapeRunner takes them.
  const TapeDoc& tape() const { return tape_; }
  const std::map<std::string, at::Tensor>& data() const { return data_; }
  /// The step that `op` of the trace belongs to.
  std::int64_t step_of(std::int32_t op) const;

  /// Runs it as recorded and compares with all that is known of what the steps left.
  Result<VerifyResult> verify(c10::Device device) const;

  /// Runs unchanged, with placebos and with each change, and judges. A change that can't be read: `usage`,
  /// before anything runs. `said` (may be empty) is called for each run.
  Result<Rehearsal> try_changes(const RewindPlan& plan, c10::Device device,
                                const std::function<void(const std::string&)>& said) const;

 private:
  /// For a run that goes on without the incident's step: why its batch is not what was bad; "" if it may be.
  std::string doubt_of_batch(c10::Device device) const;

  TapeDoc tape_;
  std::map<std::string, at::Tensor> data_;
  std::string name_;
  std::int64_t step_ = 0;
  std::int32_t rank_ = 0;
};

}  // namespace nanquest
