#include "probe/attach/session.h"

#include <ATen/ATen.h>
#include <pthread.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <functional>

#include "probe/attach/trace.h"
#include "probe/guard/one_line.h"

namespace nanquest::attach {
namespace {

/// A forked child (a data loader's worker) is not the program that trains.
std::atomic<bool> forked{false};

void forget_in_children() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  (void)once;
}

std::string gate_line(const guard::GateResult& seen) {
  std::string line;
  if (!std::isfinite(seen.loss)) line += std::isnan(seen.loss) ? "the loss is NaN" : "the loss is infinite";
  if (seen.non_finite > 0) {
    if (!std::isfinite(seen.loss)) line += ", ";
    line += std::to_string(seen.non_finite) + " gradient elements are NaN or Inf";
  } else if (line.empty()) {
    line = "the norm of the gradients overflows";
  }
  return line;
}

}  // namespace

/// A program that evaluates with gradients on never updates; its forward passes are not one endless step.
constexpr int kForwardsWithoutBackward = 64;

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
    trouble_ =
        std::string("nanquest is off: ") + doing + " failed: " + guard::one_line(e.what_without_backtrace());
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

bool AttachSession::watching() const {
  if (options_.probe.level == Level::watch) return true;
  if (step_ < options_.watch_first || step_ - last_incident_ <= options_.watch_after) return true;
  return options_.watch_every > 0 && step_ % options_.watch_every == 0;
}

void AttachSession::new_trace() {
  trace_.reset();
  batch_.clear();
  if (options_.probe.level < Level::trace) return;
  trace_ = std::make_unique<Trace>(watching());
  TraceRecorder& recorder = trace_->recorder;
  for (const auto& [name, tensor] : parameters_.all()) recorder.announce(name, tensor, SlotOrigin::parameter);
  for (const auto& [name, tensor] : buffers_.all()) recorder.announce(name, tensor, SlotOrigin::buffer);
  for (const auto& [name, tensor] : states_.all())
    recorder.announce(name, tensor, SlotOrigin::optimizer_state);
}

Door AttachSession::begin_forward() {
  Door door;
  safely("a new step", [&] {
    door = std::exchange(unsaid_, {});
    if (updated_) {
      updated_ = false;
      ++step_;
      set_micro_batch(0);
      new_trace();
    } else if (!trace_ || trace_->forwards >= kForwardsWithoutBackward) {
      new_trace();
    } else if (trace_->forwards == 0) {
      set_micro_batch(current_micro_batch() + 1);
    }
    if (trace_) ++trace_->forwards;
  });
  return door;
}

Door AttachSession::before_update(const Update& update) {
  Door door;
  safely("the gate", [&] {
    const guard::GateResult seen = gate_.run(1.0, trace_ ? trace_->loss : at::Tensor{});
    const bool good = seen.finite() && std::isfinite(seen.loss);
    const bool calibration = update.scale_overflow && std::isfinite(seen.loss) &&
                             overflows_ + 1 < options_.probe.scale_overflow_limit;
    if (good)
      overflows_ = 0;
    else if (update.scale_overflow)
      ++overflows_;
    door.gate = good ? Gate::ok : calibration ? Gate::scale_overflow : Gate::non_finite;
    loss_scale_ = update.loss_scale;
    if (trace_) trace_->gate = door.gate;
    record_.begin(
        {.step = step_, .lr = update.lr, .loss_scale = update.loss_scale, .sample_ids = sample_ids_});
    record_.gated(door.gate, seen, gate_);
    if (door.gate == Gate::non_finite) {
      door.skip = options_.skip_bad_updates;
      if (last_incident_ != step_) write_incident(door.gate, gate_line(seen), door);
    }
    // Only a watched step can tell what the optimizer did; for the others, the copies of every weight and
    // moment that a trace makes before they are overwritten would be for nothing.
    if (trace_ && !trace_->watched) {
      write_recording(door);
      trace_.reset();
    }
    if (!trace_) return;
    trace_->update_begins = trace_->recorder.op_count();
    trace_->updating.emplace(Phase::optimizer);
  });
  return door;
}

Door AttachSession::after_update() {
  Door door;
  safely("after the update", [&] {
    if (trace_) trace_->updating.reset();
    const bool weights_fine = record_.after_update(step_);
    const bool wrote_bad =
        trace_ && trace_->recorder.wrote_non_finite(trace_->update_begins, Phase::optimizer);
    if (last_incident_ != step_ && (!weights_fine || wrote_bad)) {
      door.gate = Gate::non_finite;
      write_incident(door.gate,
                     weights_fine ? "the update wrote NaN or Inf" : "a weight is NaN or Inf after the update",
                     door);
    }
    write_recording(door);
    trace_.reset();
    sample_ids_.clear();
    updated_ = true;
  });
  return door;
}

void AttachSession::loss_scale_updated() {
  const guard::GateResult seen = gate_.run(1.0, trace_->loss);
  const bool calibration = std::isfinite(seen.loss) && ++overflows_ < options_.probe.scale_overflow_limit;
  const Gate gate = calibration ? Gate::scale_overflow : Gate::non_finite;
  record_.begin({.step = step_, .sample_ids = sample_ids_});
  record_.gated(gate, seen, gate_);
  if (!calibration && last_incident_ != step_) write_incident(gate, gate_line(seen), unsaid_);
  trace_->gate = gate;
  write_recording(unsaid_);
  sample_ids_.clear();
  updated_ = true;
}

Status AttachSession::finish(const std::string& outcome) {
  Status status;
  safely("finish", [&] {
    trace_.reset();
    status = record_.finish();
    const Status ended = log_.end("finished", outcome);
    if (status) status = ended;
  });
  observer_.reset();
  return status;
}

std::unique_ptr<OpFrame> AttachSession::on_start(const OpTraits& op,
                                                 c10::ArrayRef<const c10::IValue> inputs) {
  if (!trace_ || off_ || forked.load(std::memory_order_relaxed)) return nullptr;
  // Tensor.backward() makes the first gradient as ones like the loss: the one place where the loss shows
  // itself.
  if (op.name == "aten::ones_like" && inputs[0].isTensor() && inputs[0].toTensor().numel() == 1 &&
      inputs[0].toTensor().requires_grad() && !current_node().in_backward) {
    trace_->loss = inputs[0].toTensor().detach();
    trace_->forwards = 0;
  }
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
