#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>

#include "probe/attach/trace.h"
#include "probe/capture/finish.h"
#include "probe/step/one_line.h"
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

void AttachSession::describe_results() {
  TraceRecorder& recorder = trace_->recorded->recorder;
  SnapshotDoc& doc = trace_->recorded->recording.doc;
  doc.loss = recorder.describe(losses_.telling());
  doc.gradients.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_.tensor(i).lock().defined()) continue;
    const at::Tensor& updated = gate_.parameters()[i];
    doc.gradients.push_back(recorder.describe(updated.defined() ? updated.grad() : updated));
  }
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
  describe_results();
  recorder.copy_outside();
  recorder.flag_hidden_overflows();
  const auto keep = [&](const char* group, const NamedTensors& tensors, std::vector<NamedTensor>& rows) {
    for (const auto& [name, tensor] : tensors) rows.push_back(recorder.keep_first(group, name, tensor));
  };
  keep("parameters", parameters_.living(), doc.parameters);
  keep("buffers", buffers_.living(), doc.buffers);
  keep("optimizer", states_.living(), doc.optimizer);
  keep("batch", batch_.living(), doc.batch);
  if (find_and_symbolise_culprit(doc, recorder)) culprit = one_line(describe_culprit(doc));
  if (!trace_->watched) symbolise_all(doc, recorder.stacks());
  return write_snapshot(recording, path);
}

Incidents::Names AttachSession::non_finite_state() {
  return Incidents::non_finite(state_pass_,
                                      {parameters_.living(), buffers_.living(), states_.living()});
}

bool AttachSession::damaged_state_explains_it() {
  if (!trace_ || !trace_->watched || trace_->stands()) return true;
  SnapshotDoc& doc = trace_->recorded->recording.doc;
  trace_->recorded->recorder.look_at_outside();
  describe_results();
  if (!find_culprit(doc)) return true;
  return incidents_.is_damaged(Incidents::name_of(doc.culprit.origin, doc.culprit.tensor_name));
}

bool AttachSession::only_carries_on(const Incidents::Names& bad, bool update_made) {
  if (!incidents_.carries_on(bad)) return false;
  if (!update_made) return damaged_state_explains_it();
  // The step was good before its update: what that spoiled is news.
  return std::all_of(bad.begin(), bad.end(), [&](const auto& name) { return incidents_.is_damaged(name); });
}

void AttachSession::write_incident(Gate gate, const std::string& what, StepAnswer& answer, bool update_made) {
  told_step_ = step();
  const auto bad = incidents_.count() > 0 ? non_finite_state() : Incidents::Names();
  if (only_carries_on(bad, update_made)) {
    append(answer.summary, incidents_.carry_on(step(), bad));
    return;
  }
  incidents_.begin(step());
  answer.incident = true;
  answer.summary = "step " + std::to_string(step()) + ": " + what;
  std::string why_not;
  if (options_.probe.level < Level::trace)
    why_not = "level guard keeps no trace of the step";
  else if (incidents_.may_write(why_not))
    write_file(gate, answer, update_made);
  append(answer.summary, why_not);
  append(answer.summary, incidents_.end(gate, answer.file, answer.summary));
}

void AttachSession::write_file(Gate gate, StepAnswer& answer, bool update_made) {
  std::string culprit, spoiled;
  const KeptRound* origin = who_spoiled(spoiled, update_made);
  if (!origin && !on_record()) {
    append(answer.summary,
                  "no trace of this step was kept (its gradients were finite; level watch keeps all)");
    if (standing_) append(answer.summary, standing_->why_not());
    return;
  }
  const std::int64_t of = origin ? origin->facts.step : step();
  const std::string path = free_incident_path(options_.probe.run_dir, of, options_.probe.rank);
  Status written;
  if (origin) {
    append(answer.summary, "the update of step " + std::to_string(of) + " spoiled " + spoiled);
    written = write_standing(*standing_->trace().find(origin->number), origin->facts, gate, path);
    standing_->told(*origin);
  } else {
    written = write_trace(gate, path, culprit);
    trace_->keeps = false;  // it is told
  }
  append(answer.summary, culprit);
  if (written)
    answer.file = path;
  else
    append(answer.summary, "snapshot not written: " + one_line(written.error().text()));
}

bool AttachSession::record_step() {
  if (off_ || options_.probe.level < Level::trace) return false;
  options_.record_steps.insert(steps_.made() + offset_);
  return true;
}

void AttachSession::write_recording(StepAnswer& answer) {
  if (!on_record() || options_.record_steps.erase(step()) == 0 || incidents_.last_step() == step()) return;
  std::error_code error;
  std::filesystem::create_directories(recordings_dir(options_.probe.run_dir), error);
  std::string culprit;
  const std::string path = free_recording_path(options_.probe.run_dir, step(), options_.probe.rank);
  const Status written = write_trace(trace_->gate, path, culprit);
  const std::string what =
      written ? "recorded as asked" : "not recorded: " + one_line(written.error().text());
  append(answer.summary, "step " + std::to_string(step()) + ": " + what);
  if (!written) return;
  append(answer.summary, culprit);
  answer.file = path;
}

}  // namespace nanquest::attach
