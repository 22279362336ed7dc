#include <ATen/ATen.h>

#include <filesystem>
#include <map>

#include "probe/attach/trace.h"
#include "probe/capture/finish.h"
#include "probe/guard/one_line.h"
#include "probe/snapshot/run_dir.h"

namespace nanquest::attach {
namespace {

/// Stacks of all ops as words: only replay will find the culprit of a step that nobody watched.
void symbolise_all(SnapshotDoc& doc, const TraceRecorder& recorder) {
  std::map<std::vector<std::string>, std::int32_t> known;
  for (std::size_t i = 0; i < doc.ops.size() && i < recorder.stacks().size(); ++i) {
    const auto& stack = recorder.stacks()[i];
    if (!stack || doc.ops[i].stack != kNone) continue;
    std::vector<std::string> frames = stack->symbolise();
    if (frames.empty()) continue;
    const auto [at, fresh] = known.emplace(std::move(frames), static_cast<std::int32_t>(doc.stacks.size()));
    if (fresh) doc.stacks.push_back(at->first);
    doc.ops[i].stack = at->second;
  }
}

}  // namespace

StepState AttachSession::state_of_step() const {
  StepState state;
  state.step = step();
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
  if (!trace_->watched) symbolise_all(doc, recorder);
  return write_snapshot(recording, path);
}

void AttachSession::write_incident(Gate gate, const std::string& what, Door& door) {
  last_incident_ = step();
  ++incidents_;
  door.incident = true;
  door.summary = "step " + std::to_string(step()) + ": " + what;
  if (incidents_ > options_.probe.max_incidents) {
    guard::append(door.summary,
                  "no snapshot: " + std::to_string(options_.probe.max_incidents) + " were written already");
  } else if (options_.probe.level < Level::trace) {
    guard::append(door.summary, "level guard keeps no trace of the step");
  } else if (!trace_) {
    guard::append(door.summary,
                  "no trace of this step was kept (its gradients were finite; level watch keeps all)");
  } else {
    std::string culprit;
    const std::string path = free_incident_path(options_.probe.run_dir, step(), options_.probe.rank);
    const Status written = write_trace(gate, path, culprit);
    guard::append(door.summary, culprit);
    if (written)
      door.file = path;
    else
      guard::append(door.summary, "snapshot not written: " + guard::one_line(written.error().text()));
  }
  (void)log_.incident(step(), gate, door.file, door.summary);
}

bool AttachSession::record_step() {
  if (off_ || options_.probe.level < Level::trace) return false;
  options_.record_steps.insert(steps_.made() + offset_);
  return true;
}

void AttachSession::write_recording(Door& door) {
  if (!trace_ || options_.record_steps.erase(step()) == 0 || last_incident_ == step()) return;
  std::error_code error;
  std::filesystem::create_directories(recordings_dir(options_.probe.run_dir), error);
  std::string culprit;
  const std::string path = free_recording_path(options_.probe.run_dir, step(), options_.probe.rank);
  const Status written = write_trace(trace_->gate, path, culprit);
  const std::string what = written ? "recorded as asked" : "not recorded: " + guard::one_line(written.error().text());
  guard::append(door.summary, "step " + std::to_string(step()) + ": " + what);
  if (!written) return;
  guard::append(door.summary, culprit);
  door.file = path;
}

}  // namespace nanquest::attach
