#include "probe/attach/session.h"

#include <ATen/ATen.h>
#include <pthread.h>

#include <atomic>
#include <exception>
#include <functional>

#include "probe/attach/trace.h"
#include "probe/step/one_line.h"
#include "probe/tensor/copy_memory.h"

namespace nanquest::attach {
namespace {

/// A forked child (a data loader's worker) is not the program that trains.
std::atomic<bool> forked{false};

void forget_in_children() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  (void)once;
}

/// Another optimizer may follow in the same step; what goes on for longer without it is no part of the step.
constexpr std::size_t kOpsAfterUpdate = 512;

/// A loss that is an element of something large would keep all of it.
constexpr std::size_t kScalarBytes = 64;

}  // namespace

AttachSession::AttachSession(AttachOptions options, RunLog log)
    : options_(std::move(options)),
      log_(std::move(log)),
      record_(options_.probe),
      incidents_(&log_, options_.probe.max_incidents) {}

Result<std::unique_ptr<AttachSession>> AttachSession::start(AttachOptions options) {
  try {
    auto log = RunLog::create(options.probe);
    if (!log) return log.error();
    std::unique_ptr<AttachSession> session(new AttachSession(std::move(options), std::move(log).value()));
    session->unsaid_.summary = session->log_.earlier_text();
    forget_in_children();
    if (session->options_.probe.level == Level::trace)
      session->standing_ = std::make_unique<StandingSteps>(session->options_.keep_steps,
                                                           session->options_.keep_percent / 100.0,
                                                           session->options_.keep_memory_percent / 100.0);
    if (session->options_.probe.level >= Level::trace) {
      auto observer = ObserverSession::start(*session);
      if (!observer) return observer.error();
      session->observer_.emplace(std::move(observer).value());
    }
    return session;
  } catch (const std::exception& e) {
    return Error{ErrorCode::internal, std::string("the probe can't start: ") + one_line(e.what()), ""};
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
        std::string("nanquest is off: ") + doing + " failed: " + one_line(e.what_without_backtrace());
  } catch (const std::exception& e) {
    trouble_ = std::string("nanquest is off: ") + doing + " failed: " + one_line(e.what());
  } catch (...) {
    trouble_ = std::string("nanquest is off: ") + doing + " failed";
  }
  off_ = true;
  trace_.reset();
  standing_.reset();
}

std::string AttachSession::trouble() {
  if (off_) {  // where recording failed, ops of the program were still inside
    trace_.reset();
    standing_.reset();
    if (observer_) observer_->rest();
  }
  std::string text = record_.complaint();
  if (!trouble_.empty() && !std::exchange(told_, true)) append(text, trouble_);
  return text;
}

bool AttachSession::watching() const {
  if (options_.probe.level == Level::watch) return true;
  if (step() < options_.watch_first || step() - incidents_.last_step() <= options_.watch_after) return true;
  return options_.watch_every > 0 && step() % options_.watch_every == 0;
}

void AttachSession::new_trace() {
  close_trace();
  batch_.clear();
  if (options_.probe.level < Level::trace) return;
  trace_ = std::make_unique<Trace>(++round_);
  trace_->watched = watching();
  if (!trace_->watched && standing_ && standing_->fit()) {
    release_spare_copies();
    standing_->begin(round_);
    return;
  }
  if (standing_) standing_->pass(round_);
  trace_->recorded = std::make_unique<Trace::Recorded>(trace_->watched);
  announce_all();
}

void AttachSession::close_trace() {
  if (!trace_) return;
  const std::unique_ptr<Trace> trace = std::exchange(trace_, nullptr);
  if (!standing_) return;
  if (trace->stands()) {
    standing_->end(trace->keeps, facts_of_round());
    return;
  }
  for (const OpRow& op : trace->recorded->recording.doc.ops)
    trace->odd = trace->odd || (op.flags & kOpOpaque) != 0;
  if (trace->odd) standing_->saw_odd_op();
}

std::size_t AttachSession::ops_so_far() const {
  return trace_->stands() ? standing_->trace().op_count() : trace_->recorded->recorder.op_count();
}

std::int64_t AttachSession::standing_bytes() const {
  return standing_ ? static_cast<std::int64_t>(standing_->trace().memory()) : 0;
}

void AttachSession::announce_all() {
  TraceRecorder& recorder = trace_->recorded->recorder;
  for (const auto& [name, tensor] : parameters_.living())
    recorder.announce(name, tensor, SlotOrigin::parameter);
  for (const auto& [name, tensor] : buffers_.living()) recorder.announce(name, tensor, SlotOrigin::buffer);
  for (const auto& [name, tensor] : states_.living())
    recorder.announce(name, tensor, SlotOrigin::optimizer_state);
}

Status AttachSession::finish(const std::string& outcome) {
  Status status;
  safely("finish", [&] {
    trace_.reset();
    release_spare_copies();
    standing_.reset();
    release_weights();
    status = record_.finish();
    const Status ended = log_.end("finished", outcome);
    if (status) status = ended;
  });
  observer_.reset();
  return status;
}

std::unique_ptr<OpFrame> AttachSession::on_start(const OpTraits& op,
                                                 c10::ArrayRef<const c10::IValue> inputs) {
  if (off_ || forked.load(std::memory_order_relaxed)) return nullptr;
  if (differentiated_ && !updated_) hand_written(op, inputs);
  if (trace_ && updated_ && current_phase() != Phase::optimizer &&
      ops_so_far() > trace_->update_ends + kOpsAfterUpdate)
    close_trace();
  // In other steps and between steps it sees to it that what its last steps read is kept before it is
  // overwritten.
  auto standing = standing_ ? standing_->trace().on_start(op, inputs) : nullptr;
  if (!trace_ || trace_->stands()) return standing;
  trace_->odd = trace_->odd || op.opaque || op.collective || op.awaits || op.foreign;
  auto frame = trace_->recorded->recorder.on_start(op, inputs);
  if (frame) frame->round = trace_->round;
  return frame;
}

void AttachSession::on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) {
  if (frame.round < 0) {
    if (standing_) standing_->trace().on_end(op, frame, outputs);
  } else if (trace_ && trace_->round == frame.round) {  // else it ended inside the op
    trace_->recorded->recorder.on_end(op, frame, outputs);
  }
  if (trace_) note_scalar(outputs);
}

void AttachSession::hand_written(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (by_hand_) {
    // The next differentiable op is the next step's.
    if (!at::GradMode::is_enabled() || current_node().in_backward) return;
    for (const c10::IValue& input : inputs)
      if (input.isTensor() && input.toTensor().requires_grad()) return start_step();
    return;
  }
  if (inputs.empty() || !op.argument_written[0] || current_phase() != Phase::forward ||
      current_node().in_backward)
    return;
  at::Tensor written;
  if (inputs[0].isTensor())
    written = inputs[0].toTensor();
  else if (inputs[0].isTensorList() && !inputs[0].toTensorList().empty())
    written = inputs[0].toTensorList().get(0);
  if (!written.defined() || !written.has_storage()) return;
  const c10::StorageImpl* memory = written.storage().unsafeGetStorageImpl();
  if (!weight_memory_.count(memory) || !parameters_.any_in(memory)) return;
  by_hand_ = true;
  StepAnswer answer = before_update({}, {{}, {kByHand}}, /*gradients_follow=*/false);
  if (answer.incident) unsaid_ = std::move(answer);
}

void AttachSession::note_scalar(c10::ArrayRef<const c10::IValue> outputs) {
  if (outputs.size() != 1 || !outputs[0].isTensor()) return;
  const at::Tensor& t = outputs[0].toTensor();
  if (!t.defined() || t.numel() != 1 || !t.requires_grad() || !t.is_floating_point() ||
      current_node().in_backward)
    return;
  if (t.layout() != at::kStrided || t.storage_offset() != 0 || t.storage().nbytes() > kScalarBytes) return;
  trace_->last_scalar = t.storage();
  trace_->last_scalar_type = t.scalar_type();
}

void AttachSession::on_error(const char* what) {
  trouble_ = std::string("nanquest is off: recording failed: ") + one_line(what);
  off_ = true;
}

}  // namespace nanquest::attach
