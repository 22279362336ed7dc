#include "probe/attach/session.h"

#include <ATen/ATen.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>

#include "probe/observe/memory_of.h"
#include "probe/snapshot/run_dir.h"
#include "probe/step/attempt.h"
#include "probe/step/one_line.h"
#include "probe/tensor/copy_memory.h"

namespace nanquest::attach {
namespace {

/// A forked child (a data loader's worker) does not train.
std::atomic<bool> forked{false};

void forget_in_children() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  (void)once;
}

/// Another optimizer may follow in the same step; a longer pause is not part of the step.
constexpr std::size_t kOpsAfterUpdate = 512;

}  // namespace

AttachSession::AttachSession(AttachOptions options, RunLog log)
    : options_(std::move(options)),
      log_(std::move(log)),
      history_(options_.probe),
      tensors_(gate_, history_),
      check_({{StateCheck::kParameter, [this] { return tensors_.names().parameters.living(); }},
              {StateCheck::kBuffer, [this] { return tensors_.names().buffers.living(); }},
              {StateCheck::kMoment, [this] { return tensors_.names().states.living(); }},
              {StateCheck::kKept, [this] { return tensors_.names().kept.living(); }}},
             options_.probe.check_state_every),
      living_(tensors_, gate_, check_, batch_),
      writer_(&log_, {.run_dir = options_.probe.run_dir,
                      .rank = options_.probe.rank,
                      .world_size = options_.probe.world_size,
                      .max_files = options_.probe.max_incidents,
                      .max_disk = options_.max_disk,
                      .wake_steps = options_.watch_after,
                      .muted = options_.muted,
                      .election = {.from_ranks = options_.few_files_from}}),
      ranges_(ranges_path(options_.probe.run_dir, options_.probe.rank), options_.probe.resume),
      watched_steps_(options_),
      excursions_(options_) {}

Result<std::unique_ptr<AttachSession>> AttachSession::start(
    AttachOptions options, const std::function<OpSink&(AttachSession&)>& front) {
  try {
    auto log = RunLog::create(options.probe);
    if (!log) return log.error();
    std::unique_ptr<AttachSession> session(new AttachSession(std::move(options), std::move(log).value()));
    add_text(session->pending_.told, session->log_.earlier_text());
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
  // At level watch each step reports what happened in it.
  const bool keeps = options_.probe.level == Level::trace;
  rounds_ = std::make_unique<Rounds>(
      keeps ? options_.keep_steps : 0, options_.keep_percent / 100.0, options_.keep_memory_percent / 100.0,
      record::TapeOptions{
          .steps = options_.tape,
          .room = {.share = options_.keep_memory_percent / 100.0, .folder = options_.tape_folder}});
}

std::int64_t AttachSession::name_parameter(const std::string& name, const at::Tensor& tensor) {
  std::int64_t number = -1;
  safely("naming a parameter", [&] { number = tensors_.add_parameter(name, tensor); });
  return number;
}

void AttachSession::name(const std::string& kind, const std::string& name, const at::Tensor& tensor) {
  const bool batch = kind == "batch";
  if (batch && !machine_.on_record()) return;
  safely("naming a tensor", [&] {
    if (!batch) return tensors_.put(kind, name, tensor);
    // The batches of earlier micro-batches are on record although the program has freed them.
    (void)batch_.add(name, tensor, /*keeps_freed=*/true);
    // The program wrote it before it had a name: from here on it counts as an input of the step.
    rounds_->recorder().forget_if_produced(tensor);
  });
}

void AttachSession::safely(const char* doing, const std::function<void()>& work) {
  if (machine_.blind() || forked.load(std::memory_order_relaxed)) return;
  always(doing, work);
}

void AttachSession::always(const char* doing, const std::function<void()>& work) {
  const ObserverPause pause;
  const OwnTime::Inside inside(watched_steps_.own_time());
  Facts failed = attempt(doing, work);
  if (failed.empty()) return;
  trouble_ = std::move(failed);
  machine_.fails();
  machine_.record_closes();
  awaited_.clear();
  rounds_.reset();
}

std::string AttachSession::trouble() {
  if (machine_.off()) {  // recording failed while ops of the program were running
    machine_.record_closes();
    rounds_.reset();
    if (observer_) observer_->rest();
  }
  std::string text = history_.complaint();
  if (!trouble_.empty() && !std::exchange(told_, true)) append(text, text_of(trouble_));
  return text;
}

void AttachSession::capture(bool begins) {
  machine_.captures(false);
  safely("a captured graph",
         [&] { hear(Hear::all); });  // whoever asks the device during the capture spoils it
  graph_ran();
  machine_.captures(begins);
}

void AttachSession::graph_ran() {
  safely("a captured graph", [&] {
    if (rounds_) rounds_->lose();
    graph_ran_in_ = step();
  });
}

void AttachSession::new_trace() {
  history_.step_starts();
  watched_steps_.step_begins(step());
  close_trace();
  batch_.clear();
  if (!rounds_ || machine_.paused()) return;
  machine_.record_opens();
  results_ = {};
  if (options_.audit > 0 && tensors_.on_device()) options_.audit = 0;  // a CPU does not have its kernels
  if (watched_steps_.audits(step())) options_.record_steps.insert(step());
  trace_ = {.watched = watched_steps_.watches(step(), writer_.last_step()) ||
                       rounds_->recorder().asks_for_watching()};
  if (!trace_.watched) release_spare_copies();
  watched_steps_.record_begins(step(), trace_.watched, tensors_.devices());
  rounds_->begin(trace_.watched);
}

void AttachSession::close_trace() {
  if (!machine_.on_record()) return;
  rounds_->end(trace_.keeps, facts_of_round());
  machine_.record_closes();
  results_ = {};
}

std::int64_t AttachSession::standing_bytes() const {
  return rounds_ ? static_cast<std::int64_t>(rounds_->recorder().memory()) : 0;
}

void AttachSession::note_costs() {
  if (const auto costs = watched_steps_.update_made(step(), machine_.reported()))
    history_.costs(costs->own, costs->watching);
}

int AttachSession::watch_wanted() {
  int wanted = 0;
  safely("how often steps are watched", [&] { wanted = watched_steps_.wanted(); });
  return wanted;
}

Status AttachSession::finish(const std::string& outcome) {
  Status status;
  safely("finish", [&] {
    hear(Hear::all);
    machine_.record_closes();
    release_spare_copies();
    rounds_.reset();
    tensors_.release();
    status = history_.finish();
    const Status ended = log_.end("finished", outcome);
    if (status) status = ended;
  });
  observer_.reset();
  return status;
}

std::unique_ptr<OpFrame> AttachSession::on_start(const OpTraits& op,
                                                 c10::ArrayRef<const c10::IValue> inputs) {
  const auto inside = watched_steps_.inside();
  if (machine_.blind() || forked.load(std::memory_order_relaxed)) return nullptr;
  if (machine_.may_be_by_hand() && !followed_) hand_written(op, inputs);
  targets_.sees(op, inputs);
  if (machine_.on_record() && machine_.stage() == StepMachine::Stage::updated &&
      current_phase() != Phase::optimizer &&
      (current_module() || ops_so_far() > trace_.update_ends + kOpsAfterUpdate))
    safely("after the update", [&] {  // an evaluation begins, or something else that is no part of the step
      look_between(pending_);
      close_trace();
    });
  // Between steps it makes sure that what its last steps read is copied before it is overwritten.
  return rounds_ ? rounds_->recorder().on_start(op, inputs) : nullptr;
}

void AttachSession::on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) {
  const auto inside = watched_steps_.inside();
  if (rounds_) rounds_->recorder().on_end(op, frame, outputs);
  if (machine_.on_record()) results_.note(outputs);
}

std::unique_ptr<OpFrame> AttachSession::on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                                      c10::ArrayRef<const c10::IValue> inputs) {
  return rounds_ ? rounds_->recorder().on_saved_copy(copy, outer, inputs) : nullptr;
}

void AttachSession::hand_written(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (machine_.stage() == StepMachine::Stage::by_hand) {
    // The next differentiable op is the next step's.
    if (!at::GradMode::is_enabled() || current_node().in_backward) return;
    for (const c10::IValue& input : inputs)
      if (input.isTensor() && input.toTensor().requires_grad()) return start_step();
    return;
  }
  if (derivatives_.any() && at::GradMode::is_enabled() && !current_node().in_backward)
    for (const c10::IValue& input : inputs)
      if (input.isTensor() && input.toTensor().requires_grad() && input.toTensor().is_leaf() &&
          replaces_weight(input.toTensor())) {
        updated_by_hand(derivatives_.first_op());
        take_over_name(input.toTensor());
        derivatives_.forget();
        return start_step();
      }
  if (inputs.empty() || !op.argument_written[0] || current_phase() != Phase::forward ||
      current_node().in_backward)
    return;
  if (!tensors_.is_weight(memory_of(inputs[0]))) return;
  updated_by_hand(machine_.on_record() ? ops_so_far() : 0);
  derivatives_.forget();
}

void AttachSession::on_error(const char* what) {
  trouble_ = {{Fact::off, "recording", one_line(what)}};
  machine_.fails();
}

}  // namespace nanquest::attach
