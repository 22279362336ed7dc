#include "probe/capture/step_recording.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <utility>

#include "probe/capture/finish.h"

namespace nanquest {
namespace {

struct Group {
  const char* name;
  SlotOrigin origin;
  NamedTensors StepState::*tensors;
  std::vector<NamedTensor> SnapshotDoc::*rows;
};

constexpr Group kGroups[] = {
    {"parameters", SlotOrigin::parameter, &StepState::parameters, &SnapshotDoc::parameters},
    {"buffers", SlotOrigin::buffer, &StepState::buffers, &SnapshotDoc::buffers},
    {"optimizer", SlotOrigin::optimizer_state, &StepState::optimizer, &SnapshotDoc::optimizer},
    {"batch", SlotOrigin::input, &StepState::batch, &SnapshotDoc::batch},
};

}  // namespace

StepRecording::StepRecording(const StepState& state, const RecordOptions& options)
    : options_(options), recording_(std::make_unique<Recording>()), recorder_(*recording_, options) {
  SnapshotDoc& doc = recording_->doc;
  for (const Group& group : kGroups)
    for (const auto& [name, tensor] : state.*group.tensors) {
      if (options_.lazy)
        recorder_.announce(name, tensor, group.origin);
      else
        (doc.*group.rows).push_back(recorder_.keep(group.name, name, tensor, group.origin));
    }
  for (const auto& [name, tensor] : state.extra)
    (void)recorder_.keep("extra", name, tensor, SlotOrigin::loss_scale);
  {
    auto generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    doc.rng_data = "rng/start";
    recording_->data.emplace_back(doc.rng_data, generator.get_state());
  }
  auto session = ObserverSession::start(recorder_);
  if (session)
    observer_.emplace(std::move(session).value());
  else
    recording_->notes.push_back(session.error().text());
}

void StepRecording::computed(const at::Tensor& loss, const NamedTensors& parameters) {
  const ObserverPause pause;
  SnapshotDoc& doc = recording_->doc;
  doc.loss = recorder_.describe(loss);
  doc.gradients.clear();
  for (const auto& [name, parameter] : parameters)
    doc.gradients.push_back(recorder_.describe(parameter.grad()));
}

const SnapshotDoc& StepRecording::doc_with_hidden_overflows() {
  recorder_.flag_hidden_overflows();
  return recording_->doc;
}

Recording StepRecording::end(const StepState& state) {
  stop();
  SnapshotDoc& doc = recording_->doc;
  fill_header(doc, state);
  doc.basis = options_.hash ? "every_output" : "survivors";
  recorder_.flag_hidden_overflows();
  if (options_.lazy) recorder_.copy_outside();
  for (const Group& group : kGroups) {
    if (options_.lazy)
      for (const auto& [name, tensor] : state.*group.tensors)
        (doc.*group.rows).push_back(recorder_.keep_first(group.name, name, tensor));
    else
      recorder_.link_slots(doc.*group.rows, state.*group.tensors);
  }
  if (options_.scan)
    (void)find_and_symbolise_culprit(doc, recorder_);
  else
    symbolise_all(doc, recorder_.stacks());
  return std::move(*recording_);
}

}  // namespace nanquest
