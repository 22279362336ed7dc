#include "trainer/cli/rehearsal_runs.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

#include "probe/snapshot/reader.h"
#include "replay/history/growth.h"
#include "replay/verdict/last_bit.h"
#include "replay/verdict/setting_change.h"
#include "trainer/cli/command_line.h"
#include "trainer/program/parts.h"

namespace nanquest::trainer {
namespace {

using Settings = std::map<std::string, std::string>;

/// A placebo with the losses of the unchanged run after this many steps will not differ any more.
constexpr std::size_t kSameForGood = 32;

/// Settings that have other names in rehearsals of Python programs.
std::string own_name(const std::string& key) {
  for (const auto& [theirs, ours] : {std::pair{"clip", "grad-clip"}, std::pair{"warmup", "warmup-ratio"},
                                     std::pair{"precision", "amp-dtype"}})
    if (key == theirs) return ours;
  return key;
}

/// Sets `parts` to `settings`, and then each KEY=VALUE of `change`; *0.5 multiplies the present value.
Status fill(Parts& parts, const Settings& settings, const std::string& change) {
  const auto known = [&](const std::string& key) {
    return std::find_if(parts.list.all().begin(), parts.list.all().end(),
                        [&](const Setting& s) { return s.key == key; });
  };
  std::vector<std::string> arguments;
  for (const auto& [key, text] : settings) {
    if (text.empty() || key == "resume" || known(key) == parts.list.all().end()) continue;
    std::istringstream words(text);
    const bool several = key == "inject";
    for (std::string word = text; several ? static_cast<bool>(words >> word) : !word.empty();
         word = several ? word : "")
      arguments.push_back("--" + key + "=" + word);
  }
  const Result<std::vector<SettingChange>> changes = parse_settings(change);
  if (!changes) return changes.error();
  for (const SettingChange& one : *changes) {
    const std::string key = own_name(one.key);
    std::string value = one.value;
    const auto refusal = [&](const std::string& what, const char* hint) {
      return Error{ErrorCode::usage, "--set " + one.key + "=" + value + ": " + key + what, hint};
    };
    if (const auto found = known(key);
        found != parts.list.all().end() && found->incidental && found->group != "Model")
      return refusal(" decides nothing of what is trained",
                     "try lr=*0.5, warmup-ratio, grad-clip or amp-dtype");
    if (one.factor) {
      const auto then = settings.find(key);
      char* end = nullptr;
      const double base = then == settings.end() ? 0 : std::strtod(then->second.c_str(), &end);
      if (then != settings.end() && (*end != '\0' || !one.number))
        return refusal(" is " + then->second + ", which can't be multiplied so",
                       "give KEY=VALUE, or KEY=*FACTOR for a number");
      char product[40];
      std::snprintf(product, sizeof product, "%.17g", base * one.number.value_or(0));
      value = product;
    }
    arguments.push_back("--set=" + key + "=" + value);
  }
  if (Status s = take_changes(parts.list, arguments, parts.loop.changes); !s) return s;
  CLI::App app;
  add_options(app, parts.list);
  std::reverse(arguments.begin(), arguments.end());  // in the order of CLI11
  try {
    app.parse(arguments);
  } catch (const Refused& refused) {
    return refused.error;
  } catch (const CLI::ParseError& e) {
    const std::string text = e.what();
    return Error{ErrorCode::usage,
                 (change.empty() ? "" : "--set " + change + ": ") + text.substr(0, text.find('\n')),
                 "nanquest-trainer --help lists the settings"};
  }
  return {};
}

/// Flips the last bit, in the format of the computation, of one weight; returns which.
std::string flip_last_bit(const Task& task, at::ScalarType amp, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  const NamedTensors weights = task.parameters();
  const std::uint32_t bit = last_bit(amp == at::kHalf ? 10 : amp == at::kBFloat16 ? 7 : 23);
  std::uint64_t x = seed;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto& [name, weight] = weights[next_random(x) % weights.size()];
    const auto i = static_cast<std::int64_t>(next_random(x) % static_cast<std::uint64_t>(weight.numel()));
    at::Tensor element = weight.view({-1}).select(0, i);
    const auto value = element.item<float>();
    if (!std::isnormal(value)) continue;  // a zero has no last bit to flip
    element.fill_(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ bit));
    return "the last bit of " + name + "[" + std::to_string(i) + "], seed " + std::to_string(seed);
  }
  return "no weight, as all are zero";
}

/// One run after the other.
class Rehearser {
 public:
  Rehearser(const Origin& origin, const RehearsalPlan& plan, const RehearsalListener& listener)
      : origin_(origin), plan_(plan), listener_(listener), settings_(origin.settings) {
    if (!plan.data.empty()) settings_["data"] = plan.data;
    result_ = {.step = origin.step,
               .rank = origin.rank,
               .program = origin.command,
               .began = origin.began,
               .horizon = plan.steps};
    result_.snapshot = origin.snapshot.substr(origin.snapshot.rfind('/') + 1);
    // A damaged file has no usable history; its run can be rehearsed all the same.
    if (const auto file = SnapshotReader::open(origin.snapshot)) result_.growth = weights_grew(file->doc());
  }

  Result<Rehearsal> all() {
    for (const std::string& change : plan_.changes) {
      Parts parts(kind_of(settings_));
      if (Status s = fill(parts, settings_, change); !s) return s.error();
      if (Status s = same_model(parts, change); !s) return s.error();
    }
    if (listener_.say)
      listener_.say("rehearse: step " + std::to_string(origin_.step) + " of " + origin_.run_dir + ", from " +
                    origin_.began + ", " + std::to_string(origin_.step - origin_.first_step()) +
                    " steps before it");
    std::int64_t end = origin_.step + plan_.steps + 1;
    if (Status s = one({.kind = RehearsedKind::unchanged}, end); !s) return s.error();
    compare_with_record();
    // A failure that did not come back can't be cured. A spoiled update is detected one step later than it
    // was made.
    const std::int64_t bad = result_.runs.front().failed_step.value_or(-1);
    const bool again = !origin_.incident || bad == origin_.step || bad == origin_.step + 1;
    // A placebo that changed nothing is drawn again, as often as there are placebos to make.
    const auto wanted = again ? static_cast<std::uint64_t>(plan_.placebos) : 0;
    for (std::uint64_t seed = 1; seed <= 2 * wanted && result_.runs.size() <= wanted && !stopped(); ++seed)
      if (Status s = one({.kind = RehearsedKind::placebo}, end, seed); !s) return s.error();
    for (const RehearsedRun& run : result_.runs)
      if (run.failed_step) end = std::max(end, *run.failed_step + plan_.steps + 1);
    for (const std::string& change : plan_.changes)
      if (again && !stopped())
        if (Status s = one({.kind = RehearsedKind::change, .change = change}, end); !s) return s.error();
    if (!stopped()) judge(result_);
    return result_;
  }

 private:
  bool stopped() const { return listener_.stopped && listener_.stopped(); }

  /// Weights of another shape can't continue from a state, but a run can begin with them.
  Status same_model(const Parts& parts, const std::string& change) const {
    if (!origin_.state) return {};
    for (const Setting& s : parts.list.all())
      if (s.group == "Model" && s.incidental && parts.loop.changes.contains(s.key))
        return Error{
            ErrorCode::usage,
            "--set " + change + ": " + s.key + " makes another model, and " + origin_.began +
                " has the weights of this one",
            "--before " + std::to_string(origin_.step) + " begins at the beginning, where it can be changed"};
    return {};
  }

  void compare_with_record() {
    const std::vector<double>& losses = result_.runs.front().losses;
    for (std::size_t i = 0; i < losses.size(); ++i)
      if (const auto found = origin_.losses.find(origin_.first_step() + static_cast<std::int64_t>(i));
          found != origin_.losses.end())
        result_.as_recorded = result_.as_recorded.value_or(true) && found->second == losses[i];
  }

  /// A trainer in the state where the rehearsal begins, to train until step `end`.
  Result<std::unique_ptr<Trainer>> trainer_for(Parts& parts, const std::string& change, std::int64_t end,
                                               const Listener& heard) {
    if (Status s = fill(parts, settings_, change); !s) return s.error();
    LoopConfig& loop = parts.loop;
    loop.rehearsal = true;
    loop.resume = false;
    loop.run_dir = origin_.run_dir;
    loop.eval_every = loop.eval_samples = loop.save_every = loop.metrics_every = 0;
    loop.save_minutes = 0;
    loop.stop_after = end - origin_.first_step();
    loop.not_yet_quarantined = origin_.quarantined_later;
    Result<std::unique_ptr<Trainer>> trainer = make_trainer(parts, heard);
    if (!trainer) return trainer;
    Trainer& t = **trainer;
    if (!origin_.state && !origin_.data_fingerprint.empty() &&
        t.task().data_fingerprint() != origin_.data_fingerprint)
      return Error{ErrorCode::usage,
                   origin_.run_dir + ": was trained on other data than " + parts.path + " holds now",
                   "give the data of the run: --data FILE or FOLDER"};
    if (!origin_.state) return trainer;
    if (Status s = t.go_on_from(*origin_.state); !s)
      return Error{
          s.error().code, s.error().message,
          "a state can only be trained on with its own model and data; --data says where they are now"};
    return trainer;
  }

  /// Makes a run and adds it to the result; a placebo that changes nothing is not added.
  Status one(RehearsedRun run, std::int64_t end, std::uint64_t seed = 0) {
    run.first_step = origin_.first_step();
    std::string bad;
    Trainer* training = nullptr;
    bool differs = run.kind != RehearsedKind::placebo, useless = false;
    const auto hear = [&](const StepEvent& e) {
      if (e.gate == Gate::non_finite || e.gate == Gate::scale_overflow) return void(bad = e.what);
      run.losses.push_back(e.loss);
      if (differs) return;
      const std::vector<double>& like = result_.runs.front().losses;
      const std::size_t n = run.losses.size();
      differs = n > like.size() || like[n - 1] != e.loss;
      if (differs || n < kSameForGood) return;
      useless = true;
      training->request_stop(1);
    };
    Parts parts(kind_of(settings_));
    Result<std::unique_ptr<Trainer>> trainer = trainer_for(parts, run.change, end, {hear, {}});
    if (!trainer && run.kind == RehearsedKind::unchanged) return trainer.error();
    if (!trainer) {
      run.not_tried = trainer.error().message;
      tell(run, end);
      result_.runs.push_back(std::move(run));
      return {};
    }
    training = trainer->get();
    if (seed > 0) run.change = flip_last_bit(training->task(), parts.loop.amp, seed);
    if (listener_.trains) listener_.trains(training);
    const Result<Summary> summary = stopped() ? Result<Summary>(Summary()) : training->run();
    if (listener_.trains) listener_.trains(nullptr);
    if (!summary) run.not_tried = summary.error().message;
    if (summary && summary->exit == ExitCode::non_finite) {
      run.failed_step = run.end();
      run.failure = bad.substr(bad.find(": ") == std::string::npos ? 0 : bad.find(": ") + 2);
    }
    run.ended_itself = run.not_tried.empty() && !run.failed_step && run.end() < end;
    if (useless || (!differs && run.failed_step)) return {};
    tell(run, end);
    result_.runs.push_back(std::move(run));
    return {};
  }

  void tell(const RehearsedRun& run, std::int64_t end) const {
    if (!listener_.say || stopped()) return;
    const std::string name = run.kind == RehearsedKind::unchanged ? "unchanged" : run.change;
    listener_.say(name + ": " +
                  (!run.not_tried.empty() ? "could not be tried: " + run.not_tried
                   : run.failed_step ? "bad at step " + std::to_string(*run.failed_step) + ": " + run.failure
                   : run.end() < end ? "well to the end of the run, step " + std::to_string(run.end() - 1)
                                     : "well until step " + std::to_string(run.end() - 1)));
  }

  const Origin& origin_;
  const RehearsalPlan& plan_;
  const RehearsalListener& listener_;
  Settings settings_;
  Rehearsal result_;
};

}  // namespace

Result<Rehearsal> rehearse(const Origin& origin, const RehearsalPlan& plan,
                           const RehearsalListener& listener) {
  return Rehearser(origin, plan, listener).all();
}

}  // namespace nanquest::trainer
