#include "probe/attach/session.h"

#include <ATen/ATen.h>
#include <pthread.h>

#include <atomic>
#include <exception>
#include <functional>

#include "probe/observe/memory_of.h"
#include "probe/snapshot/run_dir.h"
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
      incidents_(&log_, options_.probe.max_incidents),
      budget_(options_.max_disk),
      election_(options_.probe.run_dir, options_.probe.rank, options_.probe.world_size,
                {.from_ranks = options_.few_files_from}),
      ranges_(ranges_path(options_.probe.run_dir, options_.probe.rank), options_.probe.resume) {}

Result<std::unique_ptr<AttachSession>> AttachSession::start(
    AttachOptions options, const std::function<OpSink&(AttachSession&)>& front) {
  try {
    auto log = RunLog::create(options.probe);
    if (!log) return log.error();
    std::unique_ptr<AttachSession> session(new AttachSession(std::move(options), std::move(log).value()));
    session->pending_.summary = session->log_.earlier_text();
    forget_in_children();
    session->followed_ = static_cast<bool>(front);
    if (session->followed_ || session->options_.probe.level >= Level::trace) {
      session->begin_rounds();
      auto observer = ObserverSession::start(front ? front(*session) : *session);
      if (!observer) return observer.error();
      session->observer_.emplace(std::move(observer).value());
    }
    return session;
  } catch (const std::exception& e) {
    return Error{ErrorCode::internal, std::string("the probe can't start: ") + one_line(e.what()), ""};
  }
}

AttachSession::~AttachSession() = default;

void AttachSession::begin_rounds() {
  if (options_.probe.level < Level::trace) return;
  // At level watch each step tells itself what happened in it.
  const bool keeps = options_.probe.level == Level::trace;
  rounds_ = std::make_unique<Rounds>(
      keeps ? options_.keep_steps : 0, options_.keep_percent / 100.0, options_.keep_memory_percent / 100.0,
      record::TapeOptions{
          .steps = options_.tape,
          .room = {.share = options_.keep_memory_percent / 100.0, .folder = options_.tape_folder}});
}

void AttachSession::safely(const char* doing, const std::function<void()>& work) {
  if (off_ || captures_ || forked.load(std::memory_order_relaxed)) return;
  always(doing, work);
}

void AttachSession::always(const char* doing, const std::function<void()>& work) {
  const ObserverPause pause;
  try {
    work();
    return;
  } catch (const c10::Error& e) {
    trouble_ = std::string("nanquest is off: ") + doing + " failed: " + one_line(e.what_without_backtrace());
  } catch (const std::exception& e) {
    trouble_ = std::string("nanquest is off: ") + doing + " failed: " + one_line(e.what());
  } catch (...) {
    trouble_ = std::string("nanquest is off: ") + doing + " failed";
  }
  off_ = true;
  trace_.reset();
  rounds_.reset();
}

std::string AttachSession::trouble() {
  if (off_) {  // where recording failed, ops of the program were still inside
    trace_.reset();
    rounds_.reset();
    if (observer_) observer_->rest();
  }
  std::string text = record_.complaint();
  if (!trouble_.empty() && !std::exchange(told_, true)) append(text, trouble_);
  return text;
}

void AttachSession::capture(bool begins) {
  captures_ = false;
  graph_ran();
  captures_ = begins;
}

void AttachSession::graph_ran() {
  safely("a captured graph", [&] {
    if (rounds_) rounds_->lose();
    graph_ran_in_ = step();
  });
}

bool AttachSession::watching() const {
  if (options_.probe.level == Level::watch) return true;
  if (step() < options_.watch_first || step() - incidents_.last_step() <= options_.watch_after) return true;
  if (options_.watch_every > 0 && step() % options_.watch_every == 0) return true;
  return rounds_ && rounds_->recorder().asks_for_watching();
}

void AttachSession::new_trace() {
  close_trace();
  batch_.clear();
  if (!rounds_ || paused_) return;
  trace_.emplace(Trace{});
  trace_->watched = watching();
  if (!trace_->watched) release_spare_copies();
  rounds_->begin(trace_->watched);
}

void AttachSession::close_trace() {
  if (!trace_) return;
  rounds_->end(trace_->keeps, facts_of_round());
  trace_.reset();
}

std::int64_t AttachSession::standing_bytes() const {
  return rounds_ ? static_cast<std::int64_t>(rounds_->recorder().memory()) : 0;
}

Status AttachSession::finish(const std::string& outcome) {
  Status status;
  safely("finish", [&] {
    trace_.reset();
    release_spare_copies();
    rounds_.reset();
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
  if (off_ || captures_ || forked.load(std::memory_order_relaxed)) return nullptr;
  if (differentiated_ && !updated_ && !followed_) hand_written(op, inputs);
  if (trace_ && updated_ && current_phase() != Phase::optimizer &&
      ops_so_far() > trace_->update_ends + kOpsAfterUpdate)
    close_trace();
  // Between steps it sees to it that what its last steps read is kept before it is overwritten.
  return rounds_ ? rounds_->recorder().on_start(op, inputs) : nullptr;
}

void AttachSession::on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) {
  if (rounds_) rounds_->recorder().on_end(op, frame, outputs);
  if (trace_) note_scalar(outputs);
}

std::unique_ptr<OpFrame> AttachSession::on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                                      c10::ArrayRef<const c10::IValue> inputs) {
  return rounds_ ? rounds_->recorder().on_saved_copy(copy, outer, inputs) : nullptr;
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
  const c10::StorageImpl* memory = memory_of(inputs[0]);
  if (!memory || !weight_memory_.count(memory) || !names_.parameters.any_in(memory)) return;
  by_hand_ = true;
  StepAnswer answer = before_update({}, {{}, {kByHand}}, /*gradients_follow=*/false);
  if (std::exchange(answer.skip, false))
    append(answer.summary, "this program writes its weights itself, so its updates are not skipped");
  if (answer.incident || !answer.summary.empty()) pending_ = std::move(answer);
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
  trace_->scalar_graph = WeakGraph(t);
}

void AttachSession::on_error(const char* what) {
  trouble_ = std::string("nanquest is off: recording failed: ") + one_line(what);
  off_ = true;
}

}  // namespace nanquest::attach
