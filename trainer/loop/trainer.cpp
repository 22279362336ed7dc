// How a run begins and ends.
#include "trainer/loop/trainer.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "trainer/precision/device.h"

namespace nanquest::trainer {

double mean(const std::deque<double>& values) {
  return values.empty()
             ? 0.0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

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
      task_(std::move(task)),
      optimizer_(std::move(optimizer)),
      listener_(std::move(listener)),
      learned_(
          *optimizer_, [this] { return task_->buffers(); }, config_.device),
      ladder_(ladder_options(config_), config_.scaler, config_.amp, learned_, counters_, ladder_listener()),
      attention_(task_->attention()),
      identity_(config_, *task_, [this](const std::string& text) { say(text); }),
      injector_(config_.injections, ranks_->rank()),
      checkpoints_(config_, !config_.rehearsal && ranks_->first()),
      batches_(config_, *task_, counters_, [this](const std::string& text) { say(text); }),
      metrics_([this](const std::string& text) { say(text); }) {}

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

Status Trainer::open() {
  if (Status s = open_probe(); !s) return s;
  return open_files();
}

Status Trainer::open_files() {
  if (config_.rehearsal || !ranks_->first()) return {};
  if (Status s = checkpoints_.open(); !s) return s;
  if (config_.metrics_every == 0) return {};
  std::vector<std::string> columns;
  for (const auto& [name, value] : numbers_of({})) columns.push_back(name);
  return metrics_.open(config_.run_dir, config_.metrics_csv, counters_.optimizer_step, columns);
}

Status Trainer::open_probe() {
  if (config_.level == Level::off && !config_.rehearsal) {
    // The probe makes no directory then, but checkpoints still go there.
    Result<RunClaim> claim = RunClaim::take(config_.run_dir, ranks_->rank(), config_.resume);
    if (!claim) return claim.error();
    claim_.emplace(std::move(claim).value());
    if (!claim_->earlier().empty()) say(claim_->earlier_text());
  }
  ProbeOptions options;
  options.run_dir = config_.run_dir;
  options.level = config_.rehearsal ? Level::off : config_.level;
  options.tape = config_.rehearsal ? 0 : static_cast<int>(config_.tape);
  options.tape_folder = config_.tape_folder;
  options.frozen_weights = config_.frozen_weights;
  options.resume = config_.resume;
  options.min_loss_scale = config_.scaler.floor;
  options.config = config_.settings;
  options.rank = ranks_->rank();
  options.world_size = ranks_->size();
  if (!ranks_->alone()) options.least = [this](std::int64_t value) { return ranks_->least(value); };
  Result<std::unique_ptr<Probe>> probe = Probe::create(std::move(options));
  if (!probe) return probe.error();
  probe_ = std::move(*probe);
  for (const auto& [name, p] : task_->parameters()) probe_->watch_parameter(name, p);
  for (const auto& [name, b] : task_->buffers()) probe_->watch_buffer(name, b);
  probe_->watch_optimizer([this] { return optimizer_->state(); });
  // New names are only taken before the first step.
  const double nan = std::nan("");
  for (const Metric& metric : task_->metrics({})) probe_->log("eval_" + metric.name, nan);
  for (const auto& [name, value] : optimizer_->numbers()) probe_->log(name, nan);
  probe_->log("tokens_per_second", nan);
  return {};
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
  summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary_;
}

Status Trainer::train() {
  const std::int64_t end = config_.stop_after > 0
                               ? std::min(config_.steps, counters_.optimizer_step + config_.stop_after)
                               : config_.steps;
  checkpoints_.start_clock();
  if (follow(ladder_.keep(), nullptr) == Next::stop) return {};
  batches_.begin_ahead();
  // Of several ranks one is asked to stop before the others hear of it: then they have to agree.
  const auto asked_to_stop = [&] { return ranks_->alone() ? stop_code_ != 0 : stop_agreed_; };
  while (counters_.optimizer_step < end && !stopped_ && !asked_to_stop()) {
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
  if (rank_work_.agree_on(std::move(all), optimizer_->parameters())) return {};
  together_ = true;
  if (!ranks_->first()) return Error{ErrorCode::internal, "", ""};
  return Error{ErrorCode::internal,
               "step " + std::to_string(counters_.optimizer_step) +
                   ": weights, data or settings are not the same on all ranks",
               "give all of them the same files and settings, and machines of one kind; checkpoints before "
               "this are whole"};
}

Status Trainer::end_run() {
  if (Status s = same_everywhere(); !s) return s;
  const bool complete = counters_.optimizer_step >= config_.steps && !stopped_;
  if (complete) {
    if (Status s = evaluate_and_keep_best(last_event_); !s) return s;
    rewrite_last_metrics();
  }
  if (Status s = write_final_weights(); !s) return s;
  summary_.counters = counters_;
  summary_.state_file = checkpoints_.newest_file;
  summary_.skipped_samples = batches_.dropped;
  summary_.best_eval_loss = counters_.best_eval;
  summary_.last_loss = mean(recent_losses_);
  summary_.averaged = static_cast<std::int64_t>(recent_losses_.size());
  summary_.final_lr = next_lr();
  summary_.final_scale = ladder_.scaler().scale();
  summary_.final_format = short_name(ladder_.run_format());
  summary_.scale_history = ladder_.scaler().history();
  if (summary_.outcome.empty()) summary_.outcome = complete ? "finished" : "interrupted, resumable";
  if (stopped_) {
    summary_.exit = ExitCode::non_finite;
  } else if (!complete && stop_code_ != 0) {
    summary_.exit = static_cast<ExitCode>(stop_code_.load());
  } else if (state_was_corrupt_ || ladder_.was_corrupt()) {
    summary_.exit = ExitCode::state_corrupt;
  } else if (counters_.incidents > 0 || counters_.skipped > 0 || !batches_.dropped.empty()) {
    summary_.exit = ExitCode::finding;
  }
  return probe_->finish(summary_.outcome);
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
  return write_weights("final", {}, summary_.final_weights);
}

void Trainer::say(const std::string& text) const {
  if (ranks_->first()) say_own(text);
}

void Trainer::say_own(const std::string& text) const {
  if (listener_.on_message) listener_.on_message(text);
}

}  // namespace nanquest::trainer
