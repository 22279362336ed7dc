#include "replay/spike/state_trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "replay/rewind/changes.h"
#include "replay/rewind/last_batch.h"
#include "replay/rewind/outside_writes.h"
#include "replay/rewind/run_again.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr std::int64_t kMostLeftOut = 32;
constexpr std::uint64_t kPlacebos = 2;
/// The other batch is so many steps older: the last update was made for the one before, which it may fit
/// whatever else it did.
constexpr std::int64_t kBack = 2;
constexpr double kRisen = 1.5;  // times the usual rate of the tape

class Tries {
 public:
  Tries(const Rewind& rewind, c10::Device device, SpikeTrials& trials)
      : rewind_(rewind), device_(device), trials_(trials), last_(rewind.steps().back().step) {}

  std::int64_t last() const { return last_; }
  std::int64_t before() const { return static_cast<std::int64_t>(rewind_.steps().size()) - 1; }

  /// The figures of the last step of such a tape.
  Figures figures(const TapeDoc& tape) const {
    const auto replayer = Replayer::from_memory(tape.trace, rewind_.data(), /*look=*/false);
    if (!replayer) return {.failed = replayer.error().message};
    return Measured(*replayer).of({.device = device_});
  }
  Figures figures(const std::optional<TapeDoc>& tape) const {
    return tape ? figures(*tape) : Figures{.failed = "the tape does not hold it"};
  }

  /// Without the updates of the steps `last() - first` to `last() - end`, counted back from the step.
  Figures without(std::int64_t first, std::int64_t end) const {
    return figures(without_steps(rewind_.tape(), last_ - first, last_ - end));
  }

  /// All steps with this change, as one for which `text` is noted.
  Figures changed(const TapeRunner::Change& change) const {
    auto runner = TapeRunner::make(rewind_.tape(), rewind_.data(), last_);
    if (!runner) return {.failed = runner.error().message};
    const Measured measured(runner->replayer());
    Measured::Tally tally;
    TapeRunner::Change watched = change;
    watched.look = [&](RunOptions& options) { measured.watch(options, tally); };
    RehearsedRun run{.kind = RehearsedKind::change};
    runner->run(watched, device_, run);
    if (!run.not_tried.empty()) return {.failed = run.not_tried};
    if (run.failed_step) return {.failed = run.failure};
    if (!run.failure.empty() || run.losses.size() != rewind_.steps().size()) return {.failed = run.failure};
    return {.loss = run.losses.back(), .norm = measured.norm(tally)};
  }

  bool helps(const std::string& text, const TapeRunner::Change& change, ChangeKind kind) {
    return trials_.add(text, kind, changed(change)) == Standing::in_range;
  }

  SpikeTrials& trials() { return trials_; }
  const Rewind& rewind() const { return rewind_; }

 private:
  const Rewind& rewind_;
  c10::Device device_;
  SpikeTrials& trials_;
  std::int64_t last_ = 0;
};

std::string updates_text(std::int64_t last, std::int64_t first, std::int64_t end) {
  return first == end ? "the update of step " + std::to_string(last - first) + " left out"
                      : "the updates of steps " + std::to_string(last - first) + " to " +
                            std::to_string(last - end) + " left out";
}

void leave_out(Tries& tries, const std::function<bool()>& has_time, StateResult& result) {
  const std::int64_t most = std::min(kMostLeftOut, tries.before());
  for (std::int64_t n = 1; n <= most && has_time(); n *= 2) {
    result.left_out = n;
    result.without = tries.without(n, 1);
    result.earlier = tries.trials().standing(result.without);
    if (result.earlier == Standing::in_range || result.earlier == Standing::unknown || 2 * n > most) break;
  }
  if (result.left_out == 0) return;
  tries.trials().add(updates_text(tries.last(), result.left_out, 1), ChangeKind::op, result.without);
  const std::int64_t n = result.left_out;
  if (result.earlier != Standing::in_range || 2 * n > tries.before() || !has_time()) return;
  result.control = tries.without(2 * n, n + 1);
  result.control_failed = tries.trials().add(updates_text(tries.last(), 2 * n, n + 1) + " instead",
                                             ChangeKind::placebo, result.control) == Standing::out_of_range;
}

/// The usual rate of the tape, if some updates before the step have a far larger one.
void try_rates(Tries& tries, StateResult& result) {
  std::vector<double> rates;
  for (const TapeStep& step : tries.rewind().steps())
    if (step.step < tries.last() && step.rate > 0 && std::isfinite(step.rate)) rates.push_back(step.rate);
  if (rates.size() < 4) return;
  const double largest = *std::max_element(rates.begin(), rates.end());
  const double first = rates.front();
  if (largest <= kRisen * first) return;
  TapeRunner::Change change;
  change.most_rate = first;
  if (!tries.helps("updates with at most the learning rate " + number_text(first) + ", that of step " +
                       std::to_string(tries.rewind().steps().front().step),
                   change, ChangeKind::hyperparameter))
    return;
  result.rate = first;
  result.rate_before = largest;
}

void try_changes(Tries& tries, const std::function<bool()>& has_time, StateResult& result) {
  const TapeDoc& tape = tries.rewind().tape();
  for (const std::int64_t step : odd_steps(tape)) {
    TapeRunner::Change change;
    change.undo = step;
    if (has_time() && !result.undone &&
        tries.helps("what step " + std::to_string(step) +
                        " wrote into weights or moments outside of its update, undone",
                    change, ChangeKind::data))
      result.undone = step;
  }
  if (has_time()) try_rates(tries, result);
  for (const char* text : {"moments=reset", "lr=*0.5", "lr=*0.1", "clip=1"}) {
    if (!has_time()) return;
    const bool slows = std::string_view(text) != "moments=reset";
    if (slows && !result.slower.empty()) continue;
    const auto parsed = parse_change(text, tape, tries.last());
    if (!parsed || !parsed->not_tried.empty()) continue;
    if (!tries.helps(std::string(text) + " from step " + std::to_string(tape.steps.front().step) + " on",
                     parsed->change, ChangeKind::hyperparameter))
      continue;
    if (slows)
      result.slower = text;
    else
      result.moments = true;
  }
}

void try_placebos(Tries& tries, const std::function<bool()>& has_time, StateResult& result) {
  const auto runner = TapeRunner::make(tries.rewind().tape(), tries.rewind().data(), tries.last());
  if (!runner) return;
  for (std::uint64_t seed = 1; seed <= kPlacebos && has_time(); ++seed) {
    std::string text;
    const auto change = placebo(runner->replayer(), seed, text);
    if (!change) return;
    if (tries.helps(text + ", changed at step " + std::to_string(tries.rewind().steps().front().step),
                    *change, ChangeKind::placebo))
      result.placebo_helped = true;
  }
}

}  // namespace

StateResult try_state(const Rewind& rewind, c10::Device device, bool other_batch,
                      const std::function<bool()>& has_time, SpikeTrials& trials) {
  StateResult result;
  result.steps = static_cast<std::int64_t>(rewind.steps().size());
  if (result.steps < 2) {
    result.not_tried = "its tape holds no earlier step";
    return result;
  }
  Tries tries(rewind, device, trials);
  const Figures same = tries.figures(rewind.tape());
  if (trials.standing(same) != Standing::out_of_range || !trials.same_as_recorded(same)) {
    result.not_tried = "its tape does not come back to the step's figures";
    if (!same.failed.empty()) result.not_tried += ": " + same.failed;
    return result;
  }
  if (other_batch && result.steps > kBack) {
    result.on_other_batch = tries.figures(last_step_on_batch_before(rewind.tape(), kBack));
    result.other_batch = trials.add("the batch of step " + std::to_string(tries.last() - kBack),
                                    ChangeKind::data, result.on_other_batch);
  }
  leave_out(tries, has_time, result);
  try_changes(tries, has_time, result);
  try_placebos(tries, has_time, result);
  return result;
}

}  // namespace nanquest
