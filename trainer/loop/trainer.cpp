// How a run begins, goes on from a checkpoint, and ends.
#include "trainer/loop/trainer.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "trainer/loop/failure.h"
#include "trainer/loop/open_probe.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {
namespace {

/// A rehearsal stops where the run would have acted, and has nothing to go back to.
LadderOptions ladder_options(const LoopConfig& config) {
  LadderOptions options = config;
  if (!config.rehearsal) return options;
  options.policy = Policy::stop;
  options.rollback_limit = 0;
  options.ring_every = std::numeric_limits<std::int64_t>::max();
  return options;
}

}  // namespace

Trainer::Trainer(LoopConfig config, std::unique_ptr<Task> task, std::unique_ptr<Optimizer> optimizer,
                 Listener listener)
    : config_(std::move(config)),
      ranks_(config_.ranks != nullptr ? config_.ranks : &nobody_else()),
      rank_work_(*ranks_, config_.device),
      agreement_(*ranks_, rank_work_),
      task_(std::move(task)),
      optimizer_(std::move(optimizer)),
      listener_(std::move(listener)),
      learned_(
          *optimizer_, [this] { return task_->buffers(); }, config_.device),
      ladder_(ladder_options(config_), config_.scaler, config_.amp, learned_, counters_, ladder_listener()),
      computation_(config_, *ranks_, rank_work_, *task_, *optimizer_),
      identity_(config_, *task_, [this](const std::string& text) { say(text); }),
      checkpoints_(config_, !config_.rehearsal && ranks_->first()),
      batches_(config_, *task_, counters_, [this](const std::string& text) { say(text); }),
      metrics_(config_, *task_, *optimizer_, ladder_.scaler(), counters_,
               [this](const std::string& text) { say(text); }),
      health_(*optimizer_, config_.schedule.warmup_steps, config_.grad_clip > 0,
              [this](const std::string& text) { say(text); }) {}

Result<std::unique_ptr<Trainer>> Trainer::create(LoopConfig config, std::unique_ptr<Task> task,
                                                 std::unique_ptr<Optimizer> optimizer, Listener listener) {
  std::unique_ptr<Trainer> t(
      new Trainer(std::move(config), std::move(task), std::move(optimizer), std::move(listener)));
  Group& ranks = *t->ranks_;
  if (Status s = agreed(ranks, t->begin()); !s) return s.error();
  // The first rank before the others: it moves an earlier run out of the directory.
  for (const bool first : {true, false})
    if (Status s = agreed(ranks, ranks.first() == first ? t->open() : Status()); !s) return s.error();
  if (Status s = t->same_everywhere(); !s) return s.error();
  t->batches_.tell_of_quarantine();
  return t;
}

Status Trainer::begin() {
  if (Status s = check(config_); !s) return s;
  for (const auto& [name, p] : task_->parameters())
    if (p.scalar_type() != at::kFloat)
      return Error{ErrorCode::usage, "weight " + name + " is " + short_name(p.scalar_type()),
                   "keep weights in fp32; --amp-dtype lowers the computation alone"};
  if (Status s = batches_.open_quarantine(!config_.rehearsal && ranks_->first()); !s) return s;
  return config_.resume ? resume() : Status();
}

Status Trainer::resume() {
  const Result<FoundState> found = checkpoints_.newest();
  if (!found) return found.error();
  for (const std::string& remark : found->remarks) say(remark);
  return go_on_from(found->state);
}

Status Trainer::go_on_from(const TrainState& state) {
  if (Status s = identity_.check(state); !s) return s;
  if (Status s = restore(state); !s) return s;
  account_.take_up(state.story);
  batches_.dropped = state.story.skipped_samples;
  ladder_.scaler().set_history(state.story.scale_history);
  std::error_code ec;
  if (std::filesystem::exists(checkpoints_.weights("best"), ec))
    account_.summary.best_weights = checkpoints_.weights("best");
  return {};
}

void Trainer::complete(TrainState& state) const {
  identity_.note_in(state);
  state.story = account_.story();
  state.story.skipped_samples = batches_.dropped;
  state.story.scale_history = ladder_.scaler().history();
}

TrainState Trainer::save() const {
  TrainState state = ladder_.present();
  for (auto& [name, t] : state.tensors) t = t.clone();
  return state;
}

Status Trainer::restore(const TrainState& state) {
  return ladder_.restore(state, config_.changes.contains("device"));
}

Status Trainer::open() {
  if (config_.level == Level::off && !config_.rehearsal) {
    // The probe makes no directory then, but checkpoints still go there.
    Result<RunClaim> claim = RunClaim::take(config_.run_dir, ranks_->rank(), config_.resume);
    if (!claim) return claim.error();
    claim_.emplace(std::move(claim).value());
    if (!claim_->earlier().empty()) say(claim_->earlier_text());
  }
  Result<std::unique_ptr<Probe>> probe = open_probe(config_, *ranks_, *task_, *optimizer_);
  if (!probe) return probe.error();
  probe_ = std::move(*probe);
  if (config_.rehearsal || !ranks_->first()) return {};
  if (Status s = checkpoints_.open(); !s) return s;
  return metrics_.open();
}

Result<Summary> Trainer::run() {
  const auto start = std::chrono::steady_clock::now();
  Status ended;
  try {
    ended = train();
    batches_.stop_ahead();
    if (ended) ended = end_run();
  } catch (const std::exception& e) {
    ended = failed(e);
  }
  batches_.stop_ahead();
  if (!ended) {
    (void)probe_->finish("failed: " + ended.error().message);
    return ended.error();
  }
  account_.summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return account_.summary;
}

Status Trainer::train() {
  const std::int64_t end = config_.stop_after > 0
                               ? std::min(config_.steps, counters_.optimizer_step + config_.stop_after)
                               : config_.steps;
  checkpoints_.start_clock();
  if (follow(ladder_.keep(), nullptr) == Next::stop) return {};
  batches_.begin_ahead();
  while (counters_.optimizer_step < end && !stopped_ && !agreement_.stops()) {
    Result<Next> next = one_batch();
    if (!next) return next.error();
    if (counters_.optimizer_step % config_.ring_every == 0)
      if (Status s = same_everywhere(); !s) return s;
  }
  return {};
}

Status Trainer::same_everywhere() {
  if (ranks_->alone()) return {};
  std::string all = identity_.text();
  all += "\n" + std::to_string(counters_.optimizer_step) + "\n" + std::to_string(counters_.data_position);
  return agreement_.alike(std::move(all), optimizer_->parameters(), counters_.optimizer_step);
}

Status Trainer::end_run() {
  if (Status s = same_everywhere(); !s) return s;
  const bool complete = counters_.optimizer_step >= config_.steps && !stopped_;
  if (complete) {
    if (Status s = evaluate_and_keep_best(last_event_); !s) return s;
    if (last_event_.steps != 0 && last_event_.step + 1 == counters_.optimizer_step)
      metrics_.rewrite(last_event_);
  }
  if (Status s = write_final_weights(); !s) return s;
  account_.close();
  Summary& summary = account_.summary;
  summary.counters = counters_;
  summary.state_file = checkpoints_.newest_file;
  summary.skipped_samples = batches_.dropped;
  summary.best_eval_loss = counters_.best_eval;
  summary.final_lr = next_lr();
  summary.final_scale = ladder_.scaler().scale();
  summary.final_format = short_name(ladder_.run_format());
  summary.scale_history = ladder_.scaler().history();
  if (summary.outcome.empty()) summary.outcome = complete ? "finished" : "interrupted, resumable";
  summary.exit = exit_code(complete);
  return probe_->finish(summary.outcome);
}

ExitCode Trainer::exit_code(bool complete) const {
  if (stopped_) return ExitCode::non_finite;
  if (!complete && agreement_.stop_code() != 0) return static_cast<ExitCode>(agreement_.stop_code());
  if (state_was_corrupt_ || ladder_.was_corrupt()) return ExitCode::state_corrupt;
  const bool found = counters_.incidents > 0 || counters_.skipped > 0 || !batches_.dropped.empty();
  return found ? ExitCode::finding : ExitCode::ok;
}

Status Trainer::write_final_weights() {
  if (!learned_.finite(false)) {
    state_was_corrupt_ = true;
    if (!ladder_.return_to_newest()) {
      say("the weights are not finite and there is no older state; nothing is written");
    } else {
      went_back();
      say("the weights are not finite: what is written is the state before step " +
          std::to_string(counters_.optimizer_step));
    }
  }
  if (!learned_.finite(false)) return {};
  if (Status s = write_state(); !s) return s;
  return write_weights("final", {}, account_.summary.final_weights);
}

Status Trainer::write_weights(const std::string& name, std::map<std::string, std::string> facts,
                              std::string& path) {
  facts["step"] = std::to_string(counters_.optimizer_step);
  return checkpoints_.write_weights(name, *task_, facts, path);
}

Error Trainer::failed(const std::exception& e) {
  Error error = failure(e, counters_.optimizer_step);
  try {
    save_before_ending();
  } catch (const std::exception& again) {
    say("nothing could be saved: " + first_line(again));
  }
  return error;
}

void Trainer::save_before_ending() {
  optimizer_->clear_gradients();
  // What failed in the middle of an update has moved some weights and not others.
  const bool as_it_is = consistent_ && learned_.finite(true);
  Status saved;
  if (as_it_is) {
    saved = write_state();
  } else if (const TrainState* kept = ladder_.newest();
             kept != nullptr && kept->counters.data_steps > checkpoints_.saved_batches) {
    saved = checkpoints_.write(*kept);
  }
  if (!saved) {
    say("nothing could be saved: " + saved.error().text());
  } else if (!checkpoints_.newest_file.empty()) {
    say("saved: " + checkpoints_.newest_file + "; --resume goes on from step " +
        std::to_string(checkpoints_.saved_step));
  }
}

void Trainer::say(const std::string& text) const {
  if (ranks_->first()) say_own(text);
}

void Trainer::say_own(const std::string& text) const {
  if (listener_.on_message) listener_.on_message(text);
}

}  // namespace nanquest::trainer
