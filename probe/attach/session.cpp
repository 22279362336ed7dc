#include "probe/attach/session.h"

#include <ATen/ATen.h>
#include <pthread.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <functional>

#include "probe/capture/finish.h"
#include "probe/guard/one_line.h"
#include "probe/snapshot/run_dir.h"

namespace nanquest::attach {
namespace {

/// A forked child (a data loader's worker) is not the program that trains.
std::atomic<bool> forked{false};

void forget_in_children() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  (void)once;
}

std::string gate_line(std::int64_t step, const guard::GateResult& seen) {
  std::string line = "step " + std::to_string(step) + ": ";
  if (!std::isfinite(seen.loss)) line += std::isnan(seen.loss) ? "the loss is NaN" : "the loss is infinite";
  if (seen.non_finite > 0) {
    if (!std::isfinite(seen.loss)) line += ", ";
    line += std::to_string(seen.non_finite) + " gradient elements are NaN or Inf";
  }
  return line;
}

}  // namespace

/// One step as it is being recorded.
struct AttachSession::Trace {
  explicit Trace(bool watch, bool stacks) : recorder(recording, options(watch, stacks)), watched(watch) {}
  static RecordOptions options(bool watch, bool stacks) {
    return {.scan = watch, .hash = watch, .stacks = stacks, .lazy = true};
  }
  Recording recording;
  TraceRecorder recorder;
  bool watched;
  at::Tensor loss;                       ///< what backward was started from
  std::size_t update_begins = 0;         ///< first op of the optimizer
  std::optional<PhaseScope> updating;
};

AttachSession::AttachSession(AttachOptions options, guard::RunLog log)
    : options_(std::move(options)), log_(std::move(log)), record_(options_.probe) {}

Result<std::unique_ptr<AttachSession>> AttachSession::start(AttachOptions options) {
  try {
    auto log = guard::RunLog::create(options.probe);
    if (!log) return log.error();
    std::unique_ptr<AttachSession> session(new AttachSession(std::move(options), std::move(log).value()));
    forget_in_children();
    if (session->options_.probe.level >= Level::trace) {
      auto observer = ObserverSession::start(*session);
      if (!observer) return observer.error();
      session->observer_.emplace(std::move(observer).value());
    }
    return session;
  } catch (const std::exception& e) {
    return Error{ErrorCode::internal, std::string("the probe can't start: ") + guard::one_line(e.what()), ""};
  }
}

AttachSession::~AttachSession() = default;

void AttachSession::safely(const char* doing, const std::function<void()>& work) {
  if (off_ || forked.load(std::memory_order_relaxed)) return;
  const ObserverPause pause;
  try {
    work();
    return;
  } catch (const c10::Error& e) {
    trouble_ = std::string("nanquest is off: ") + doing + " failed: " + guard::one_line(e.what_without_backtrace());
  } catch (const std::exception& e) {
    trouble_ = std::string("nanquest is off: ") + doing + " failed: " + guard::one_line(e.what());
  } catch (...) {
    trouble_ = std::string("nanquest is off: ") + doing + " failed";
  }
  off_ = true;
  trace_.reset();
}

std::string AttachSession::trouble() {
  if (trouble_.empty() || std::exchange(told_, true)) return "";
  return trouble_;
}

void AttachSession::name_parameter(const std::string& name, const at::Tensor& tensor) {
  safely("naming a parameter", [&] {
    const std::size_t before = gate_.size();
    gate_.watch(tensor);
    if (gate_.size() == before) return;
    parameters_.emplace_back(name, tensor);
    record_.watch_parameter(name, tensor);
    if (trace_) trace_->recorder.announce(name, tensor, SlotOrigin::parameter);
  });
}

void AttachSession::name_buffer(const std::string& name, const at::Tensor& tensor) {
  safely("naming a buffer", [&] {
    buffers_.emplace_back(name, tensor);
    if (trace_) trace_->recorder.announce(name, tensor, SlotOrigin::buffer);
  });
}

void AttachSession::name_state(const std::string& name, const at::Tensor& tensor) {
  safely("naming optimizer state", [&] {
    states_.emplace_back(name, tensor);
    if (trace_) trace_->recorder.announce(name, tensor, SlotOrigin::optimizer_state);
  });
}

void AttachSession::name_batch(const std::string& name, const at::Tensor& tensor) {
  safely("naming the batch", [&] {
    batch_.emplace_back(name, tensor.detach());
    if (trace_) trace_->recorder.announce(name, tensor, SlotOrigin::input);
  });
}

bool AttachSession::watching() const {
  if (options_.probe.level == Level::watch) return true;
  if (step_ < options_.watch_first || step_ - last_incident_ <= options_.watch_after) return true;
  return options_.watch_every > 0 && step_ % options_.watch_every == 0;
}

void AttachSession::new_trace() {
  trace_.reset();
  batch_.clear();
  if (options_.probe.level < Level::trace) return;
  trace_ = std::make_unique<Trace>(watching(), true);
  for (const auto& [name, tensor] : parameters_) trace_->recorder.announce(name, tensor, SlotOrigin::parameter);
  for (const auto& [name, tensor] : buffers_) trace_->recorder.announce(name, tensor, SlotOrigin::buffer);
  for (const auto& [name, tensor] : states_) trace_->recorder.announce(name, tensor, SlotOrigin::optimizer_state);
}

void AttachSession::begin_forward() {
  safely("a new step", [&] {
    if (trace_ && !updated_) return;
    updated_ = false;
    new_trace();
  });
}

Door AttachSession::before_update(double lr) {
  Door door;
  safely("the gate", [&] {
    const at::Tensor loss = trace_ ? trace_->loss : at::Tensor{};
    const guard::GateResult seen = gate_.run(1.0, loss);
    const bool good = seen.finite() && std::isfinite(seen.loss);
    door.gate = good ? Gate::ok : Gate::non_finite;
    record_.begin({.step = step_, .lr = lr, .sample_ids = sample_ids_});
    record_.gated(door.gate, seen, gate_);
    if (good) overflows_ = 0;
    if (!good) {
      door.skip = options_.skip_bad_updates;
      door.summary = gate_line(step_, seen) + write_incident(door.gate);
    }
    if (trace_) {
      trace_->update_begins = trace_->recorder.op_count();
      trace_->updating.emplace(Phase::optimizer);
    }
  });
  return door;
}

Door AttachSession::after_update() {
  Door door;
  safely("after the update", [&] {
    if (trace_) trace_->updating.reset();
    const bool weights_fine = record_.after_update(step_);
    const bool wrote_bad = trace_ && trace_->watched && last_incident_ != step_ &&
                           trace_->recorder.wrote_non_finite(trace_->update_begins, Phase::optimizer);
    if (last_incident_ != step_ && (!weights_fine || wrote_bad)) {
      door.gate = Gate::non_finite;
      door.summary = "step " + std::to_string(step_) + ": the update wrote NaN or Inf" + write_incident(door.gate);
    }
    trace_.reset();
    updated_ = true;
    sample_ids_.clear();
    ++step_;
  });
  return door;
}

void AttachSession::loss_scale_updated() {
  const guard::GateResult seen = gate_.run(1.0, trace_->loss);
  const bool calibration = std::isfinite(seen.loss) && ++overflows_ < options_.probe.scale_overflow_limit;
  const Gate gate = calibration ? Gate::scale_overflow : Gate::non_finite;
  record_.begin({.step = step_, .sample_ids = sample_ids_});
  record_.gated(gate, seen, gate_);
  if (!calibration) trouble_ = "";
  if (!calibration) (void)write_incident(gate);
  updated_ = true;
  ++step_;
}

StepState AttachSession::state_of_step() const {
  StepState state;
  state.step = step_;
  state.rank = options_.probe.rank;
  state.world_size = options_.probe.world_size;
  state.config = options_.probe.config;
  state.sample_ids = sample_ids_;
  state.history = record_.tables();
  state.history_samples = record_.samples();
  return state;
}

std::string AttachSession::write_incident(Gate gate) {
  last_incident_ = step_;
  ++incidents_;
  std::string text, path;
  if (incidents_ > options_.probe.max_incidents) {
    text = "; no snapshot: " + std::to_string(options_.probe.max_incidents) + " were written already";
  } else if (!trace_) {
    text = "; level guard records no trace";
  } else {
    Recording& recording = trace_->recording;
    TraceRecorder& recorder = trace_->recorder;
    SnapshotDoc& doc = recording.doc;
    fill_header(doc, state_of_step());
    doc.gate = gate;
    doc.basis = trace_->watched ? "every_output" : "survivors";
    doc.loss = recorder.describe(trace_->loss);
    for (const auto& [name, parameter] : parameters_) doc.gradients.push_back(recorder.describe(parameter.grad()));
    recorder.copy_outside();
    for (const auto& [name, t] : parameters_) doc.parameters.push_back(recorder.keep_first("parameters", name, t));
    for (const auto& [name, t] : buffers_) doc.buffers.push_back(recorder.keep_first("buffers", name, t));
    for (const auto& [name, t] : states_) doc.optimizer.push_back(recorder.keep_first("optimizer", name, t));
    for (const auto& [name, t] : batch_) doc.batch.push_back(recorder.keep_first("batch", name, t));
    if (find_and_symbolise_culprit(doc, recorder)) text = "; " + guard::one_line(describe_culprit(doc));
    path = free_incident_path(options_.probe.run_dir, step_, options_.probe.rank);
    const Status written = write_snapshot(recording, path);
    text += written ? "; " + path : "; snapshot not written: " + guard::one_line(written.error().text());
    if (!written) path.clear();
  }
  (void)log_.incident(step_, gate, path, text.substr(2));
  return text;
}

Status AttachSession::finish(const std::string& outcome) {
  Status status;
  safely("finish", [&] {
    status = record_.finish();
    const Status ended = log_.end("finished", outcome);
    if (status) status = ended;
  });
  observer_.reset();
  return status;
}

std::unique_ptr<OpFrame> AttachSession::on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (!trace_ || off_ || forked.load(std::memory_order_relaxed)) return nullptr;
  // Tensor.backward() makes the first gradient as ones like the loss: the one place where the loss shows itself.
  if (op.name == "aten::ones_like" && inputs[0].isTensor() && inputs[0].toTensor().numel() == 1 &&
      !current_node().in_backward)
    trace_->loss = inputs[0].toTensor().detach();
  return trace_->recorder.on_start(op, inputs);
}

void AttachSession::on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) {
  if (!trace_) return;
  trace_->recorder.on_end(op, frame, outputs);
  // GradScaler.update() without an update before it: the scaler kept the optimizer from running.
  if (op.name == "aten::_amp_update_scale_" && !trace_->updating && !updated_) loss_scale_updated();
}

void AttachSession::on_error(const char* what) {
  trouble_ = std::string("nanquest is off: recording failed: ") + guard::one_line(what);
  off_ = true;
}

}  // namespace nanquest::attach
