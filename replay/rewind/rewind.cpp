#include "replay/rewind/rewind.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "replay/rewind/changes.h"
#include "replay/rewind/last_batch.h"
#include "replay/rewind/once_more.h"
#include "replay/rewind/run_again.h"

namespace nanquest {
namespace {

std::string outcome(const RehearsedRun& run) {
  if (!run.not_tried.empty()) return "not tried: " + run.not_tried;
  if (run.failed_step) return "bad at step " + std::to_string(*run.failed_step) + ": " + run.failure;
  const std::string until = "well until step " + std::to_string(run.end() - 1);
  return run.failure.empty() ? until : until + ": " + run.failure;
}

std::string name_of(const RehearsedRun& run) {
  return run.kind == RehearsedKind::unchanged ? "unchanged" : run.change;
}

}  // namespace

Result<Rewind> Rewind::open(const SnapshotReader& file) {
  auto tape = file.read_tape();
  if (!tape) return tape.error();
  Rewind made;
  made.tape_ = std::move(tape).value();
  made.tape_.trace.environment = file.doc().environment;
  made.step_ = file.doc().step;
  made.rank_ = file.doc().rank;
  made.name_ = file.path().substr(file.path().rfind('/') + 1);
  close_last_step(made.tape_, made.step_);
  const auto tensors = file.tensors();
  if (!tensors) return tensors.error();
  for (const TensorInfo& tensor : *tensors) {
    if (!tensor.path.starts_with(kTapePrefix)) continue;
    auto read = read_as_tensor(file, tensor.path);
    if (!read) return read.error();
    made.data_.emplace(tensor.path, std::move(read).value());
  }
  return made;
}

std::int64_t Rewind::step_of(std::int32_t op) const {
  if (tape_.steps.empty()) return step_;
  const auto found = span_with(spans_of(tape_), op);
  return found ? tape_.steps[*found].step : tape_.steps.back().step;
}

Result<VerifyResult> Rewind::verify(c10::Device device) const {
  auto replayer = Replayer::from_memory(tape_.trace, data_, /*look=*/false);
  if (!replayer) return Error{ErrorCode::bad_file, name_ + ": its tape: " + replayer.error().message, ""};
  return nanquest::verify(*replayer, device);
}

/// The state with which the run goes on need not be bad itself: other weights may survive the batch, and
/// these weights may not survive any other batch.
std::string Rewind::doubt_of_batch(c10::Device device) const {
  const auto run_of = [&](TapeDoc tape) -> std::optional<RehearsedRun> {
    auto runner = TapeRunner::make(std::move(tape), data_, step_);
    RehearsedRun run{.kind = RehearsedKind::change};
    if (!runner) return std::nullopt;
    runner->run({}, device, run);
    if (!run.not_tried.empty()) return std::nullopt;
    return run;
  };
  const auto alone = run_of(last_step_alone(tape_));
  if (alone && !alone->failed_step && !alone->losses.empty())
    return "goes on, but the step's batch is well on the weights of step " +
           std::to_string(tape_.steps.front().step) + ": it is not the batch alone";
  auto exchanged = last_step_on_batch_before(tape_);
  const auto other = exchanged ? run_of(std::move(*exchanged)) : std::nullopt;
  if (other && other->failed_step == step_)
    return "goes on, but that step goes bad with the batch of the step before it too: it is not the batch";
  return "";
}

Result<Rehearsal> Rewind::try_changes(const RewindPlan& plan, c10::Device device,
                                      const std::function<void(const std::string&)>& said) const {
  const std::vector<std::string> changes = plan.changes.empty() ? usual_changes(tape_, step_) : plan.changes;
  std::vector<TapeChange> parsed;
  for (const std::string& text : changes) {
    auto change = parse_change(text, tape_, step_);
    if (!change) return change.error();
    parsed.push_back(std::move(change).value());
  }
  if (tape_.steps.empty()) return Error{ErrorCode::bad_file, name_ + ": its tape holds no step", ""};
  const std::int64_t beyond =
      std::min<std::int64_t>(plan.steps, static_cast<std::int64_t>(tape_.steps.size()) - 1);
  const std::int64_t first = tape_.steps.front().step, last = tape_.steps.back().step;
  Rehearsal r{.snapshot = name_, .step = step_, .rank = rank_, .horizon = beyond};
  r.program = "nanquest-replay rewind";
  r.began = "the tape's beginning, step " + std::to_string(first);
  r.as_recorded = true;
  r.growth = plan.growth;
  r.again = last + 1;
  auto runner = TapeRunner::make(once_more(tape_, beyond), data_, step_);
  if (!runner) return runner.error();
  std::map<std::int64_t, TapeRunner> without;
  const auto tell = [&](const RehearsedRun& run) {
    if (said) said(name_of(run) + ": " + outcome(run));
  };
  RehearsedRun unchanged{.kind = RehearsedKind::unchanged, .first_step = first};
  runner->run({}, device, unchanged);
  tell(unchanged);
  r.runs.push_back(std::move(unchanged));
  // A placebo that changes nothing is drawn again, as often as there are placebos to make.
  std::int64_t useful = 0;
  for (std::uint64_t seed = 1;
       useful < plan.placebos && seed <= 2 * static_cast<std::uint64_t>(plan.placebos); ++seed) {
    RehearsedRun run{.kind = RehearsedKind::placebo, .first_step = first};
    const auto change = placebo(runner->replayer(), seed, run.change);
    if (!change) break;
    runner->run(*change, device, run);
    if (run.losses == r.runs.front().losses && run.failed_step == r.runs.front().failed_step) continue;
    ++useful;
    tell(run);
    r.runs.push_back(std::move(run));
  }
  const std::string too_short = "the tape ends " + std::to_string(beyond) +
                                " steps after the failure, its own steps once more included, and " +
                                "a cure must be seen for " + std::to_string(kOutlive);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    RehearsedRun run{.kind = RehearsedKind::change, .change = changes[i], .first_step = first};
    run.not_tried = beyond < kOutlive ? too_short
                    : parsed[i].leaves_out == step_ && last != step_
                        ? "the tape goes on after step " + std::to_string(step_)
                        : parsed[i].not_tried;
    const TapeRunner* with = &*runner;
    if (run.not_tried.empty() && parsed[i].leaves_out) {
      const std::int64_t out = *parsed[i].leaves_out;
      auto known = without.find(out);
      if (known == without.end()) {
        const auto cut =
            out == step_ ? std::optional(once_more(tape_, beyond, true)) : without_step(tape_, out);
        if (!cut) {
          run.not_tried = "the tape does not hold step " + std::to_string(out);
        } else {
          auto made = TapeRunner::make(out == step_ ? *cut : once_more(*cut, beyond), data_, step_, out);
          if (!made) return made.error();
          known = without.emplace(out, std::move(made).value()).first;
        }
      }
      if (known != without.end()) with = &known->second;
    }
    if (run.not_tried.empty()) with->run(parsed[i].change, device, run);
    if (run.not_tried.empty() && parsed[i].leaves_out == step_ && !run.failed_step)
      run.doubt = doubt_of_batch(device);
    tell(run);
    r.runs.push_back(std::move(run));
  }
  judge(r);
  return r;
}

}  // namespace nanquest
