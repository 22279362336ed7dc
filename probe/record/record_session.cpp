#include "probe/record/record_session.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "probe/record/header.h"
#include "probe/record/tape_recording.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

StepNames names_of(const StepState& state) {
  return {named_memory(state.parameters), named_memory(state.buffers), named_memory(state.optimizer),
          named_memory(state.batch),      named_memory(state.extra),   {}};
}

}  // namespace

RecordSession::RecordSession(Recorder& recorder, const StepState& state, const RecordOptions& options,
                             bool listens)
    : recorder_(recorder), names_(names_of(state)) {
  {
    auto generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    rng_ = generator.get_state();
  }
  for (const auto& [name, parameter] : state.parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined() || !is_plain(gradient)) continue;
    old_gradients_.push_back(gradient.storage().getWeakStorageImpl());
    names_.gradients.push_back({name, gradient.storage().unsafeGetStorageImpl(), {}});
  }
  recorder_.begin_step(state.step, options.watch);
  if (!listens) return;
  auto session = ObserverSession::start(recorder_);
  if (session)
    observer_.emplace(std::move(session).value());
  else
    not_observed_ = session.error().text();
}

RecordSession::~RecordSession() {
  stop();
  recorder_.end_step(/*keep=*/false);
}

void RecordSession::stop() {
  observer_.reset();
  recorder_.stop();
}

void RecordSession::computed(const at::Tensor& loss, const NamedTensors& parameters) {
  const ObserverPause pause;
  loss_ = recorder_.see(loss);
  gradients_.clear();
  for (const auto& [name, parameter] : parameters) gradients_.push_back(recorder_.see(parameter.grad()));
}

void RecordSession::healthy() {
  record::TwinNames names;
  const auto add = [](record::Addresses& to, const std::vector<NamedMemory>& from) {
    for (const NamedMemory& each : from)
      if (each.storage) to.insert(each.storage);
  };
  for (const auto* group :
       {&names_.parameters, &names_.buffers, &names_.optimizer, &names_.loss_scale, &names_.gradients})
    add(names.state, *group);
  add(names.batch, names_.batch);
  if (const record::Step* step = recorder_.current()) recorder_.keep_healthy(step->number, names);
}

StepTables RecordSession::tables(const StepState& state) {
  stop();
  StepTables tables(recorder_, *recorder_.current());
  tables.build(names_);
  SnapshotDoc& doc = tables.recording.doc;
  fill_header(doc, state);
  doc.rng_data = "rng/start";
  tables.recording.data.emplace_back(doc.rng_data, rng_);
  if (!not_observed_.empty()) tables.recording.notes.push_back(not_observed_);
  if (loss_) doc.loss = tables.add(*loss_);
  for (const SeenTensor& gradient : gradients_) doc.gradients.push_back(tables.add(gradient));
  tables.finish(names_of(state));
  if (!state.embed_weights) tables.refer_to_files();
  return tables;
}

std::shared_ptr<TapeRecording> RecordSession::tape(const StepState& state,
                                                   std::unique_ptr<record::Step>& held,
                                                   std::string& complaint) {
  const auto tables_of = [&](record::Step& whole) {
    StepTables tables(recorder_, whole);
    tables.build(names_of(state));
    if (loss_) tables.recording.doc.loss = tables.add(*loss_);
    for (const SeenTensor& gradient : gradients_)
      tables.recording.doc.gradients.push_back(tables.add(gradient));
    return tables;
  };
  return tape_so_far(recorder_, held, tables_of, state.embed_weights, complaint);
}

Recording RecordSession::end(const StepState& state) {
  return std::move(tables(state).recording);
}

Recording RecordSession::end_and_own(const StepState& state,
                                     const std::shared_ptr<const Recorder>& recorder) {
  StepTables made = tables(state);
  made.own(recorder);
  return std::move(made.recording);
}

}  // namespace nanquest
