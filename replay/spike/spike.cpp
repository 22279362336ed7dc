#include "replay/spike/spike.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "probe/snapshot/reader.h"
#include "probe/trace/samples.h"
#include "replay/lab/lab.h"
#include "replay/rewind/changes.h"
#include "replay/spike/findings.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr double kLeastSeconds = 60;
constexpr std::uint64_t kBitsChanged = 3;

class Explanation {
 public:
  Explanation(const Replayer& replayer, const SpikeOptions& options, const SpikeNote& note, Verdict& v)
      : replayer_(replayer),
        options_(options),
        lab_(replayer, {.seconds = options.seconds > 0 ? options.seconds : kLeastSeconds}),
        measured_(replayer),
        trials_(note),
        v_(v) {}

  void make() {
    v_.batch = batch_size(replayer_.doc());
    add_usual();
    const Figures recorded = measure({});
    if (!trials_.same_as_recorded(recorded)) {
      v_.explanation = "Replay does not come back to the figures that the step had (" +
                       (recorded.failed.empty() ? trials_.text(recorded) : recorded.failed) +
                       "), so nothing was tried: its loss or gradients are not those of one pass.";
      return;
    }
    say("the step on other data");
    const RunResult run = lab_.run({});
    const TwinRun twin(lab_, run);
    const StepBatch batch(lab_, twin);
    SpikeFindings found;
    found.after = trials_.note().diverged ? Aftermath::left : options_.after;
    found.data = try_data(
        batch, [this](const RunOptions& options) { return measure(options); },
        [this] { return lab_.has_time(); }, trials_);
    say("the step in wider formats");
    found.wide = try_wide();
    const bool batch_open = found.data.verdict == DataResult::Verdict::unknown ||
                            found.data.verdict == DataResult::Verdict::whole_batch;
    found.state = on_tape(batch_open);
    v_.batch = std::max(v_.batch, batch.samples());
    if (found.data.verdict == DataResult::Verdict::samples) name_samples(found.data.samples);
    tell(found, trials_, v_);
    if (v_.cause != Label::spike_data) name_samples({});  // the explanation has them
    if (v_.cause == Label::spike_data && v_.poison.empty()) name_all_samples();
    const auto& open = found.data.not_tested;
    v_.not_tested.insert(v_.not_tested.end(), open.begin(), open.end());
    if (!found.state.not_tried.empty())
      v_.not_tested.push_back("the step's batch on earlier weights: " + found.state.not_tried);
    if (!lab_.has_time()) v_.not_tested.emplace_back("what no time was left for (more: --budget SECONDS)");
  }

  const SpikeTrials& trials() const { return trials_; }

 private:
  void say(const char* what) const {
    if (options_.progress) options_.progress(what);
  }

  Figures measure(const RunOptions& options) {
    return measured_.of([this](const RunOptions& each) { return lab_.run(each); }, options);
  }

  void add_usual() {
    const auto add = [&](const char* name, const std::optional<SpikeFigure>& figure) {
      if (!figure) return;
      v_.evidence.push_back(
          {std::string(name) + (figure->out ? "" : ", inside its range"), figure_text(*figure),
           "a spike from " + number_text(figure->edge) + " on, back at " + number_text(figure->back)});
    };
    add("loss", trials_.note().loss);
    add("gradient norm", trials_.note().norm);
  }

  bool has_short_floats() const {
    const auto& tensors = replayer_.doc().tensors;
    return std::any_of(tensors.begin(), tensors.end(), [](const TensorRow& row) {
      return dtype_is_float(row.dtype) && dtype_size(row.dtype) <= 2;
    });
  }

  WideResult try_wide() {
    WideResult wide;
    const auto in = [&](Precision precision, const char* name) {
      if (wide.helps || !lab_.has_time()) return;
      const Figures figures = measure({.precision = precision});
      if (!figures.failed.empty()) return;
      wide.format = name;
      wide.figures = figures;
      wide.helps = trials_.add("the whole step in " + wide.format, ChangeKind::precision, figures) ==
                   Standing::in_range;
    };
    if (has_short_floats()) in(Precision::fp32, "fp32");
    in(Precision::fp64, "fp64");
    for (std::uint64_t seed = 1; wide.helps && seed <= kBitsChanged && lab_.has_time(); ++seed) {
      std::string text;
      const auto change = placebo(replayer_, seed, text);
      if (!change) break;
      RunOptions options;
      options.edit.slot_edit = change->slots;
      if (trials_.add(text, ChangeKind::placebo, measure(options)) != Standing::out_of_range)
        wide.placebo_helped = true;
    }
    return wide;
  }

  StateResult on_tape(bool other_batch) {
    if (!replayer_.has_file()) return {.not_tried = "there is no file"};
    const auto rewind = Rewind::open(replayer_.reader());
    if (!rewind) return {.not_tried = "the file holds no tape (nanquest run --tape)"};
    say("the steps of the tape, changed");
    return try_state(
        *rewind, options_.device, other_batch, [this] { return lab_.has_time(); }, trials_);
  }

  void name_samples(const std::vector<std::int64_t>& samples) {
    v_.poison = samples;
    v_.poison_ids.clear();
    for (const std::int64_t sample : samples)
      if (std::string id = sample_id(replayer_.doc(), sample); !id.empty())
        v_.poison_ids.push_back(std::move(id));
  }

  void name_all_samples() {
    std::vector<std::int64_t> all(static_cast<std::size_t>(std::max<std::int64_t>(v_.batch, 0)));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    name_samples(all);
  }

  const Replayer& replayer_;
  const SpikeOptions& options_;
  Lab lab_;
  Measured measured_;
  SpikeTrials trials_;
  Verdict& v_;
};

}  // namespace

void explain_spike(const Replayer& replayer, const SpikeOptions& options, Verdict& verdict) {
  const auto note = spike_note(replayer.doc());
  if (!note) {
    verdict.not_tested.emplace_back(
        "why the step is out of its range: the file does not hold what was usual in its run");
    return;
  }
  verdict.found = true;
  verdict.cause = Label::unknown;
  Explanation explanation(replayer, options, *note, verdict);
  try {
    explanation.make();
  } catch (const std::exception& e) {
    verdict.cause = Label::unknown;
    verdict.confidence = 0;
    verdict.poison.clear();
    verdict.poison_ids.clear();
    verdict.explanation = "The experiments stopped: " + std::string(e.what()).substr(0, 300);
  }
  const auto& tried = explanation.trials().tried();
  verdict.counterfactuals.insert(verdict.counterfactuals.end(), tried.begin(), tried.end());
}

}  // namespace nanquest
