// One batch, and what follows of it: an update, or what the ladder does about a step that is not finite.
#include <chrono>
#include <cmath>
#include <utility>

#include "trainer/loop/trainer.h"

namespace nanquest::trainer {
namespace {

/// The file that rank `other` writes where this one writes `path`; `path` if it is not called like one of a
/// rank.
std::string file_of_rank(std::string path, std::int32_t own, std::int32_t other) {
  const std::string mark = ".r" + std::to_string(own) + ".";
  const std::size_t at = path.rfind(mark);
  if (other >= 0 && at != std::string::npos)
    path.replace(at, mark.size(), ".r" + std::to_string(other) + ".");
  return path;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<Trainer::Next> Trainer::one_batch() {
  const NvtxRange range("step");
  const auto start = std::chrono::steady_clock::now();
  Result<Batch> batch = [&] {
    const NvtxRange loading("data");
    return batches_.next();
  }();
  if (Status s = agreement_.ready(batch ? Status() : batch.error()); !s) {
    save_before_ending();
    return s.error();
  }
  if (agreement_.stop_agreed()) return Next::advance;
  for (;;) {
    const StepReport report = attempt(*batch);
    Ladder::Answer answer = ladder_.after(report);
    StepEvent event = event_of(report);
    if (answer.next == Ladder::Next::update) {
      if (!report.summary.empty()) say_own(report.summary);
      const StepReport updated = apply(report);
      answer = ladder_.updated(updated);
      if (updated.ok()) {
        consistent_ = true;
        event.seconds = seconds_since(start);
        if (Status s = after_step(event, *batch); !s) return s.error();
        return follow(ladder_.keep(), nullptr);
      }
    }
    if (answer.next != Ladder::Next::again) return follow(answer, &*batch);
    if (answer.why.empty()) tell_failed(report);
  }
}

StepReport Trainer::attempt(const Batch& batch) {
  const at::ScalarType format = ladder_.format();
  StepInputs inputs = computation_.begin(batch, counters_.data_steps);
  inputs.step = counters_.optimizer_step;
  inputs.lr = next_lr();
  inputs.loss_scale = ladder_.loss_scale();
  inputs.clip_norm = config_.grad_clip;
  const std::int64_t count = task_->loss_count(batch);  // of all ranks: their losses are added up
  return probe_->step(inputs, [&] {
    return computation_.run(inputs.batch, count, counters_.data_steps, format, inputs.loss_scale);
  });
}

StepReport Trainer::apply(const StepReport& report) {
  const NvtxRange range("optimizer");
  const bool may_clip = config_.grad_clip > 0 && report.grad_norm > 0;
  const double factor = may_clip ? report.clip_coefficient(config_.grad_clip) : 1.0;
  const std::int64_t step = counters_.optimizer_step;
  health_.before_update(step, ladder_.format());
  computation_.share_peaks();
  consistent_ = false;
  const StepReport updated = probe_->update(step, [&] {
    if (factor < 1.0) optimizer_->scale_gradients(factor);
    optimizer_->step(next_lr());
  });
  if (updated.ok()) {
    health_.after_update(step, factor < 1.0);
  } else {  // the update that spoiled something was undone, or left it spoiled
    consistent_ = !updated.state_corrupt;
  }
  return updated;
}

StepEvent Trainer::event_of(const StepReport& report) const {
  StepEvent event;
  event.step = counters_.optimizer_step;
  event.steps = config_.steps;
  event.loss = report.loss;
  event.grad_norm = report.grad_norm;
  event.scale = ladder_.scaler().scale();
  event.lr = next_lr();
  event.gate = report.gate;
  if (!report.ok()) event.what = report.summary;
  return event;
}

void Trainer::pass_batch() {
  ++counters_.data_steps;
  counters_.data_position += batches_.span();
}

Status Trainer::after_step(StepEvent event, const Batch& batch) {
  const ObserverPause measuring;
  const std::int64_t tokens = task_->loss_count(batch);
  event.tokens_per_second = event.seconds > 0 ? static_cast<double>(tokens) / event.seconds : 0;
  pass_batch();
  counters_.tokens += tokens;
  account_.add(event);

  const bool evaluate_now = config_.eval_every > 0 && counters_.optimizer_step % config_.eval_every == 0;
  if (evaluate_now && counters_.optimizer_step < config_.steps)
    if (Status s = evaluate_and_keep_best(event); !s) return s;
  for (const auto& [name, value] : optimizer_->numbers()) probe_->log(name, value);
  probe_->log("tokens_per_second", event.tokens_per_second);
  remaining_.add(seconds_since(began_));
  event.seconds_left = remaining_.left(config_.steps - counters_.optimizer_step);
  metrics_.write(event);
  last_event_ = event;
  if (listener_.on_step) listener_.on_step(event);
  return checkpoints_.is_time(counters_.optimizer_step) ? write_state() : Status();
}

std::vector<Metric> Trainer::evaluate() {
  batches_.settle();
  return computation_.evaluate(ladder_.run_format());
}

Status Trainer::evaluate_and_keep_best(StepEvent& event) {
  if (config_.eval_samples <= 0 || task_->eval_samples() == 0) return {};
  event.held_out = evaluate();
  for (const Metric& metric : event.held_out) probe_->log("eval_" + metric.name, metric.value);
  account_.add(event.held_out);
  const Metric& decisive = event.held_out.front();
  if (!std::isfinite(decisive.value)) {
    say("the held-out " + decisive.name + " is not finite; these weights are not called best");
    return {};
  }
  if (counters_.best_eval != 0 && decisive.value >= counters_.best_eval) return {};
  if (!learned_.finite(false)) {
    say("some weights are not finite; they are not called best");
    return {};
  }
  if (Status s = write_weights("best", {{"eval_" + decisive.name, std::to_string(decisive.value)}},
                               account_.summary.best_weights);
      !s)
    return s;
  counters_.best_eval = decisive.value;
  return {};
}

Trainer::Next Trainer::follow(const Ladder::Answer& answer, const Batch* batch) {
  if (answer.dropped && batch != nullptr) {
    batches_.drop(batch->ids, answer.why);
    pass_batch();
  }
  if (answer.went_back) went_back();
  if (answer.next != Ladder::Next::stop) return Next::advance;
  stopped_ = true;
  account_.summary.outcome = "stopped: " + answer.why;
  say(account_.summary.outcome);
  return Next::stop;
}

void Trainer::went_back() {
  consistent_ = true;
  checkpoints_.saved_step = -1;  // what is at that step from now on is something else
  metrics_.cut();
}

LadderListener Trainer::ladder_listener() {
  return {.say =
              [this](const std::string& text) {
                // The first line is that of the incident: the rank that it began on has more to say of it.
                if (std::exchange(whose_, -1) == ranks_->rank()) return say_own(text);
                say(text);
              },
          .incident = [this](const StepReport& report) { note_incident(report); },
          .complete = [this](TrainState& state) { complete(state); }};
}

void Trainer::note_incident(const StepReport& report) {
  if (!report.state_corrupt) save_before_policy();
  const std::string bad = rank_work_.bad_ranks(whose_);
  if (!bad.empty()) say(bad);
  account_.add_incident(counters_.optimizer_step, file_of_rank(report.incident, ranks_->rank(), whose_));
  tell_failed(report);
}

void Trainer::save_before_policy() {
  // Batches skipped in a row leave the weights alone: one file serves them all.
  if (checkpoints_.saved_step == counters_.optimizer_step || !learned_.finite(true)) return;
  if (Status s = write_state(); !s) say("no checkpoint before the policy acts: " + s.error().text());
}

void Trainer::tell_failed(const StepReport& report) const {
  if (listener_.on_step) listener_.on_step(event_of(report));
}

}  // namespace nanquest::trainer
