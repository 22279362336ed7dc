#include "trainer/loop/config.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace nanquest::trainer {
namespace {

constexpr std::pair<Policy, std::string_view> kPolicies[] = {{Policy::retry_fp32, "retry_fp32"},
                                                             {Policy::skip, "skip"},
                                                             {Policy::fallback_fp32, "fallback_fp32"},
                                                             {Policy::rollback, "rollback"},
                                                             {Policy::stop, "stop"}};
constexpr std::pair<Level, std::string_view> kLevels[] = {
    {Level::off, "off"}, {Level::guard, "guard"}, {Level::trace, "trace"}, {Level::watch, "watch"}};
constexpr std::pair<FrozenWeights, std::string_view> kFrozenWeights[] = {
    {FrozenWeights::reference, "reference"}, {FrozenWeights::embed, "embed"}};

/// Removes a whole number from the front of `text`; false if there is none.
bool take_number(std::string_view& text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

/// `injections` as a setting that is given as text, once for each.
TextValue injections_as_text(std::vector<Injection>& injections) {
  TextValue value;
  value.repeated = true;
  value.set = [&injections](const std::string& text) -> Status {
    Result<Injection> injection = parse_injection(text);
    if (!injection) return injection.error();
    injections.push_back(*injection);
    return {};
  };
  value.text = [&injections] {
    std::string text;
    for (const Injection& i : injections) {
      if (!text.empty()) text += ' ';
      text += i.kind == Injection::Kind::nan_loss ? "nan-loss@" : "inf-grad@";
      text += std::to_string(i.at);
      if (i.count != 1) text.append("x").append(std::to_string(i.count));
      if (i.only_low_precision) text += ":amp";
      if (i.rank >= 0) text.append(":r").append(std::to_string(i.rank));
    }
    return text;
  };
  return value;
}

}  // namespace

void declare(SettingList& list, LoopConfig& c) {
  list.group("Run");
  list.add("run-dir", c.run_dir,
           "where history, incidents and checkpoints go; an earlier run in it is moved to earlier/ inside");
  list.add("resume", c.resume, "go on from the run directory's last checkpoint, bit for bit");
  list.add("steps", c.steps, "optimizer steps in all (0 = from --epochs)");
  list.add("epochs", c.epochs, "passes over the data; used when --steps is 0 (both 0 = 3 passes)");
  list.add("stop-after", c.stop_after, "end after so many steps, resumably (0 = don't)");
  list.add("save-every", c.save_every, "steps between resumable checkpoints (0 = by time only)");
  list.add("save-minutes", c.save_minutes,
           "minutes between resumable checkpoints (0 = by steps only); also at the end and at incidents");
  list.add("keep-last", c.keep_last, "how many of them are kept; final and best stay anyway");
  list.add("eval-every", c.eval_every,
           "steps between held-out losses (0 = at the end only, -1 = after each pass over the data)");
  list.add("eval-windows", c.eval_samples, "held-out windows looked at (0 = never, -1 = all)");
  list.add("metrics-every", c.metrics_every,
           "steps between lines of metrics.jsonl in the run directory (0 = no such file)");
  list.add("metrics-csv", c.metrics_csv, "the same lines as metrics.csv too");
  list.add(
      "prefetch", c.prefetch,
      "make the next batch on a thread of its own while a step runs (of use where making one takes long)");
  list.add("seed", c.seed, "of weights, dropout and data order");
  list.group("Optimizer");
  list.add("grad-clip", c.grad_clip, "largest gradient norm (0 = no clipping)");
  list.add("batch-size", c.batch_size, "windows an optimizer step");
  list.add("accumulation", c.micro_batches, "parts the batch is computed in");
  list.group("Guard");
  list.add("level", c.level, "how much the probe does", Words<Level>(kLevels));
  list.add(
      "tape", c.tape,
      "steps before an incident that its file holds, for nanquest-replay rewind; at level trace (0 = none)");
  list.add("tape-folder", c.tape_folder,
           "the tape's large values are files of this folder instead of memory; they are gone with the "
           "program")
      .type_name = "DIR";
  list.add("frozen-weights", c.frozen_weights,
           "what snapshots hold of weights that stay as they came from a file. reference: where they lie in "
           "it, and their hash; embed: all of them",
           Words<FrozenWeights>(kFrozenWeights));
  list.add("on-incident", c.policy, "what follows a non-finite step", Words<Policy>(kPolicies)).alias =
      "policy";
  list.add("lr-backoff", c.lr_backoff, "factor on the learning rate that the fp32 fallback leaves behind");
  list.add("skip-limit", c.skip_limit, "batches skipped in a row before rolling back");
  list.add("rollback-limit", c.rollback_limit, "rollbacks before stopping");
  list.add("ring-every", c.ring_every, "steps between states kept in memory for a rollback");
  list.add("ring-depth", c.ring_depth,
           "how many of them (at most --rollback-limit): the n-th rollback goes n of them back");
  list.add("quarantine", c.quarantine,
           "file of sample ids, one a line, that are never used; those of skipped batches are added")
      .type_name = "FILE";
  list.add("inject", injections_as_text(c.injections),
           "damage on purpose, to try a policy: nan-loss@BATCH, inf-grad@BATCH, with xCOUNT, :amp "
           "(only in low precision) and :rN (only on rank N)");
  list.incidental({"run-dir", "resume", "steps", "epochs", "stop-after", "save-every", "save-minutes",
                   "keep-last", "eval-every", "eval-windows", "level", "tape", "tape-folder",
                   "frozen-weights", "inject", "metrics-every", "metrics-csv", "prefetch"});
}

Status check(const LoopConfig& c) {
  const auto wrong = [](const std::string& what, const std::string& hint) {
    return Error{ErrorCode::usage, what, hint};
  };
  if (c.steps < 1) return wrong("steps must be at least 1", "give --steps");
  if (c.batch_size < 1) return wrong("batch-size must be at least 1", "try 8");
  if (c.micro_batches < 1 || c.batch_size % c.micro_batches != 0)
    return wrong("batch-size " + std::to_string(c.batch_size) + " can't be split into " +
                     std::to_string(c.micro_batches) + " micro-batches",
                 "make the batch size a multiple of --accumulation");
  if (c.ranks != nullptr && c.batch_size % (c.micro_batches * c.ranks->size()) != 0)
    return wrong(
        "batch-size " + std::to_string(c.batch_size) + " can't be split over " +
            std::to_string(c.ranks->size()) + " ranks" +
            (c.micro_batches > 1 ? " in " + std::to_string(c.micro_batches) + " micro-batches each" : ""),
        "make the batch size, which is that of all ranks together, a multiple of " +
            std::to_string(c.micro_batches * c.ranks->size()));
  if (Status s = check(c.schedule); !s) return s;
  if (Status s = check(c.scaler); !s) return s;
  if (Status s = check(static_cast<const LadderOptions&>(c)); !s) return s;
  if (!(c.grad_clip >= 0)) return wrong("grad-clip must not be negative", "0 switches clipping off");
  if (!(c.save_minutes >= 0)) return wrong("save-minutes must not be negative", "0 saves by steps only");
  if (c.keep_last < 1) return wrong("keep-last must be at least 1", "try 3");
  if (c.tape < 0 || c.tape > 100'000)
    return wrong("tape must be between 0 and 100000 steps", "64 is usual; 0 keeps none");
  if (c.tape > 0 && c.level != Level::trace)
    return wrong("a tape is kept at level trace alone", "add --level trace, or leave out --tape");
  if (c.tape > 0 && c.ranks != nullptr && !c.ranks->alone())
    return wrong(
        "a tape is kept of a run of one rank alone: what ranks add up between them can't be run again",
        "leave out --tape; nanquest-trainer rehearse tries changes of such a run");
  if (c.metrics_every < 0) return wrong("metrics-every must not be negative", "0 writes no metrics");
  return {};
}

std::int64_t steps_in_pass(const LoopConfig& c, const Task& task) {
  const std::int64_t size = std::max<std::int64_t>(1, c.batch_size);
  return (task.train_samples() + size - 1) / size;
}

std::int64_t steps_of(const LoopConfig& c, const Task& task) {
  if (c.steps > 0) return c.steps;
  return (c.epochs > 0 ? c.epochs : 3) * steps_in_pass(c, task);
}

Result<Injection> parse_injection(const std::string& text) {
  const Error wrong{ErrorCode::usage, "--inject " + text + " is not understood",
                    "nan-loss@40, inf-grad@40x5, nan-loss@40:amp or nan-loss@40:r1"};
  Injection injection;
  std::string_view rest = text;
  const std::size_t at = rest.find('@');
  if (at == std::string_view::npos) return wrong;
  const std::string_view kind = rest.substr(0, at);
  if (kind == "inf-grad") {
    injection.kind = Injection::Kind::inf_gradient;
  } else if (kind != "nan-loss") {
    return wrong;
  }
  rest.remove_prefix(at + 1);
  if (!take_number(rest, injection.at)) return wrong;
  if (rest.starts_with('x')) {
    rest.remove_prefix(1);
    if (!take_number(rest, injection.count)) return wrong;
  }
  if (rest.starts_with(":amp")) {
    injection.only_low_precision = true;
    rest.remove_prefix(4);
  }
  if (rest.starts_with(":r")) {
    rest.remove_prefix(2);
    std::int64_t rank = 0;
    if (!take_number(rest, rank)) return wrong;
    injection.rank = static_cast<std::int32_t>(rank);
  }
  if (!rest.empty()) return wrong;
  return injection;
}

}  // namespace nanquest::trainer
