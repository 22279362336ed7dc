#include <ATen/ATen.h>

#include <filesystem>

#include "probe/attach/trace.h"
#include "probe/capture/finish.h"
#include "probe/guard/one_line.h"
#include "probe/snapshot/run_dir.h"
#include "probe/trace/culprit.h"

namespace nanquest::attach {

RoundFacts AttachSession::facts_of_round() {
  return {step(), loss_scale_, sample_ids_, batch_};
}

StepState AttachSession::state_of_step(const RoundFacts& facts) const {
  StepState state;
  state.step = facts.step;
  state.rank = options_.probe.rank;
  state.world_size = options_.probe.world_size;
  state.loss_scale = facts.loss_scale;
  state.config = options_.probe.config;
  state.sample_ids = facts.sample_ids;
  state.history = record_.tables();
  state.history_samples = record_.samples();
  return state;
}

Status AttachSession::write_trace(Gate gate, const std::string& path, std::string& culprit) {
  if (trace_->stands())
    return write_standing(*standing_->trace().find(trace_->round), facts_of_round(), gate, path);
  Recording& recording = trace_->recorded->recording;
  TraceRecorder& recorder = trace_->recorded->recorder;
  SnapshotDoc& doc = recording.doc;
  fill_header(doc, state_of_step(facts_of_round()));
  doc.gate = gate;
  doc.basis = trace_->watched ? "every_output" : "survivors";
  doc.loss = recorder.describe(losses_.telling());
  NamedTensors weights;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor weight = parameters_.tensor(i).lock();
    if (!weight.defined()) continue;
    const at::Tensor& updated = gate_.parameters()[i];
    doc.gradients.push_back(recorder.describe(updated.defined() ? updated.grad() : updated));
    weights.emplace_back(parameters_.name(i), std::move(weight));
  }
  recorder.copy_outside();
  const auto keep = [&](const char* group, const NamedTensors& tensors, std::vector<NamedTensor>& rows) {
    for (const auto& [name, tensor] : tensors) rows.push_back(recorder.keep_first(group, name, tensor));
  };
  keep("parameters", weights, doc.parameters);
  keep("buffers", buffers_.living(), doc.buffers);
  keep("optimizer", states_.living(), doc.optimizer);
  keep("batch", batch_.living(), doc.batch);
  if (find_and_symbolise_culprit(doc, recorder)) culprit = guard::one_line(describe_culprit(doc));
  if (!trace_->watched) symbolise_all(doc, recorder.stacks());
  return write_snapshot(recording, path);
}

void AttachSession::write_incident(Gate gate, const std::string& what, Door& door, bool update_made) {
  last_incident_ = step();
  ++incidents_;
  door.incident = true;
  door.summary = "step " + std::to_string(step()) + ": " + what;
  if (incidents_ > options_.probe.max_incidents) {
    guard::append(door.summary,
                  "no snapshot: " + std::to_string(options_.probe.max_incidents) + " were written already");
  } else if (options_.probe.level < Level::trace) {
    guard::append(door.summary, "level guard keeps no trace of the step");
  } else {
    write_file(gate, door, update_made);
  }
  (void)log_.incident(step(), gate, door.file, door.summary);
}

void AttachSession::write_file(Gate gate, Door& door, bool update_made) {
  std::string culprit, spoiled;
  const KeptRound* origin = who_spoiled(spoiled, update_made);
  if (!origin && !on_record()) {
    guard::append(door.summary,
                  "no trace of this step was kept (its gradients were finite; level watch keeps all)");
    if (standing_) guard::append(door.summary, standing_->why_not());
    return;
  }
  const std::int64_t of = origin ? origin->facts.step : step();
  const std::string path = free_incident_path(options_.probe.run_dir, of, options_.probe.rank);
  Status written;
  if (origin) {
    guard::append(door.summary, "the update of step " + std::to_string(of) + " spoiled " + spoiled);
    written = write_standing(*standing_->trace().find(origin->number), origin->facts, gate, path);
    standing_->told(*origin);
  } else {
    written = write_trace(gate, path, culprit);
    trace_->keeps = false;  // it is told
  }
  guard::append(door.summary, culprit);
  if (written)
    door.file = path;
  else
    guard::append(door.summary, "snapshot not written: " + guard::one_line(written.error().text()));
}

bool AttachSession::record_step() {
  if (off_ || options_.probe.level < Level::trace) return false;
  options_.record_steps.insert(steps_.made() + offset_);
  return true;
}

void AttachSession::write_recording(Door& door) {
  if (!on_record() || options_.record_steps.erase(step()) == 0 || last_incident_ == step()) return;
  std::error_code error;
  std::filesystem::create_directories(recordings_dir(options_.probe.run_dir), error);
  std::string culprit;
  const std::string path = free_recording_path(options_.probe.run_dir, step(), options_.probe.rank);
  const Status written = write_trace(trace_->gate, path, culprit);
  const std::string what =
      written ? "recorded as asked" : "not recorded: " + guard::one_line(written.error().text());
  guard::append(door.summary, "step " + std::to_string(step()) + ": " + what);
  if (!written) return;
  guard::append(door.summary, culprit);
  door.file = path;
}

}  // namespace nanquest::attach
