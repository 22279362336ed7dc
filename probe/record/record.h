/// Recording one step: the interface of probe/record.
///
///     StepState state;                       // names for what the step reads from outside
///     state.parameters = {{"fc.weight", w}, {"fc.bias", b}};
///     state.batch = {{"x", x}, {"y", y}};
///     Recording rec = record_step(state, [&] { auto loss = f(x); loss.backward(); return loss; });
///     if (rec.doc.culprit.op != kNone) …     // the culprit has been looked for
///     Status s = write_snapshot(rec, "run/incidents/step-00000131.r0.h5");
///
/// Recording changes no bit of what the step computes. It records on the calling thread and on the
/// autograd threads that work for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "probe/base/result.h"
#include "probe/observe/step_scope.h"
#include "probe/snapshot/model.h"
#include "probe/snapshot/reference.h"
#include "probe/snapshot/tape.h"

namespace nanquest {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// What the step starts from, by name. A tensor is read (and copied) when the step first uses it. Must live
/// as long as the recording.
struct StepState {
  std::int64_t step = 0;
  std::int32_t rank = 0, world_size = 1;
  double loss_scale = 1;
  /// Copy weights into the snapshot even if a file on this machine holds them too, so that the snapshot needs
  /// no other file. If false, the snapshot refers to that file (reference.h).
  bool embed_weights = false;
  NamedTensors parameters, buffers, optimizer, batch, extra;  ///< extra: the loss scale tensor and the like
  std::vector<std::string> sample_ids, sample_texts;
  std::map<std::string, std::string> config;
  std::vector<SeriesTable> history;
  std::vector<std::vector<std::string>> history_samples;
};

struct RecordOptions {
  bool watch = true;   ///< statistics and a hash of everything that ops write and read
  bool stacks = true;  ///< gather the C++/Python stack of every op; only the culprit's is symbolised
};

/// The steps before it, as one long trace (tape.h).
struct TapeRecording {
  TapeDoc doc;
  NamedTensors data;
  std::vector<FileReference> references;
};

/// A recorded step: tables, and the bytes they name.
struct Recording {
  SnapshotDoc doc;
  NamedTensors data;                      ///< path in the file -> CPU tensor, contiguous
  std::vector<FileReference> references;  ///< paths in the file whose bytes are in another one
  at::Tensor loss;                        ///< what the step returned
  std::string failure;                    ///< message of the exception that ended the step, "" if none
  std::vector<std::string> notes;         ///< what could not be recorded faithfully
  std::shared_ptr<TapeRecording> tape;    ///< null if there is none
};

/// Runs `step` once under the recorder. `step` returns the loss (may be undefined). Exceptions of the step
/// are caught and stored in `failure`; the recorder itself never throws.
Recording record_step(const StepState& state, const std::function<at::Tensor()>& step,
                      const RecordOptions& options = {});

/// Writes the recording as one snapshot file (complete or absent).
Status write_snapshot(const Recording& recording, const std::string& path);

/// Fills `environment` with what changes numerics: versions, threads, CPU capability, flags, variables.
std::map<std::string, std::string> capture_environment();

}  // namespace nanquest
