#include <ATen/ATen.h>

#include "probe/attach/trace.h"
#include "probe/capture/finish.h"
#include "probe/guard/one_line.h"
#include "probe/snapshot/run_dir.h"

namespace nanquest::attach {

StepState AttachSession::state_of_step() const {
  StepState state;
  state.step = step_;
  state.rank = options_.probe.rank;
  state.world_size = options_.probe.world_size;
  state.loss_scale = loss_scale_;
  state.config = options_.probe.config;
  state.sample_ids = sample_ids_;
  state.history = record_.tables();
  state.history_samples = record_.samples();
  return state;
}

Status AttachSession::write_trace(Gate gate, const std::string& path, std::string& culprit) {
  Recording& recording = trace_->recording;
  TraceRecorder& recorder = trace_->recorder;
  SnapshotDoc& doc = recording.doc;
  fill_header(doc, state_of_step());
  doc.gate = gate;
  doc.basis = trace_->watched ? "every_output" : "survivors";
  doc.loss = recorder.describe(trace_->loss);
  for (const auto& [name, p] : parameters_.all()) doc.gradients.push_back(recorder.describe(p.grad()));
  recorder.copy_outside();
  for (const auto& [name, t] : parameters_.all()) doc.parameters.push_back(recorder.keep_first("parameters", name, t));
  for (const auto& [name, t] : buffers_.all()) doc.buffers.push_back(recorder.keep_first("buffers", name, t));
  for (const auto& [name, t] : states_.all()) doc.optimizer.push_back(recorder.keep_first("optimizer", name, t));
  for (const auto& [name, t] : batch_.all()) doc.batch.push_back(recorder.keep_first("batch", name, t));
  if (find_and_symbolise_culprit(doc, recorder)) culprit = guard::one_line(describe_culprit(doc));
  return write_snapshot(recording, path);
}

void AttachSession::write_incident(Gate gate, const std::string& what, Door& door) {
  last_incident_ = step_;
  ++incidents_;
  door.incident = true;
  door.summary = "step " + std::to_string(step_) + ": " + what;
  if (incidents_ > options_.probe.max_incidents) {
    door.summary += "; no snapshot: " + std::to_string(options_.probe.max_incidents) + " were written already";
  } else if (options_.probe.level < Level::trace) {
    door.summary += "; level guard keeps no trace of the step";
  } else if (!trace_) {
    door.summary += "; no trace of this step was kept (its gradients were finite; level watch keeps all)";
  } else {
    std::string culprit;
    const std::string path = free_incident_path(options_.probe.run_dir, step_, options_.probe.rank);
    const Status written = write_trace(gate, path, culprit);
    if (!culprit.empty()) door.summary += "; " + culprit;
    if (written) door.file = path;
    else door.summary += "; snapshot not written: " + guard::one_line(written.error().text());
  }
  (void)log_.incident(step_, gate, door.file, door.summary);
}

}  // namespace nanquest::attach
