#include "replay/spike/findings.h"

#include <utility>

#include "replay/verdict/confidence.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

using Data = DataResult::Verdict;

std::string steps_text(const Verdict& v, std::int64_t back) {
  return back == 1 ? "step " + std::to_string(v.step - 1)
                   : "steps " + std::to_string(v.step - back) + " to " + std::to_string(v.step - 1);
}

std::string sample_names(const Verdict& v) {
  constexpr std::size_t kNamed = 8;
  std::string text = v.poison.size() == 1 ? "sample " : "samples ";
  for (std::size_t i = 0; i < v.poison.size() && i < kNamed; ++i) {
    text += (i ? ", " : "") + std::to_string(v.poison[i]);
    if (i < v.poison_ids.size()) text += " (" + v.poison_ids[i] + ")";
  }
  return text + (v.poison.size() > kNamed ? " and others" : "");
}

/// The figures on that batch which decided.
const Figures& other_batch(const SpikeFindings& f) {
  return f.state.other_batch == Standing::unknown ? f.data.before : f.state.on_other_batch;
}

std::string data_sentence(const SpikeFindings& f, const SpikeTrials& trials, const Verdict& v) {
  switch (data_of(f)) {
    case Data::samples:
      return "Without " + sample_names(v) + " the step is in its usual range (" +
             trials.text(f.data.without) + "); without as many others it is not (" +
             trials.text(f.data.control) + "). ";
    case Data::whole_batch:
      return "With the batch of an earlier step the step is in its usual range (" +
             trials.text(other_batch(f)) + "); no single samples are why. ";
    case Data::other_batch_too:
      return "With the batch of an earlier step the step is not in its usual range either (" +
             trials.text(other_batch(f)) + "). ";
    case Data::unknown:
      return "";
  }
  return "";
}

std::string state_sentence(const SpikeFindings& f, const SpikeTrials& trials, const Verdict& v) {
  const StateResult& s = f.state;
  if (!s.not_tried.empty()) return "";
  std::string text;
  if (s.earlier == Standing::in_range)
    text = "Without the update" + std::string(s.left_out == 1 ? "" : "s") + " of " +
           steps_text(v, s.left_out) + " its batch is in range (" + trials.text(s.without) + ")" +
           (s.control_failed ? "; without as many before " + std::string(s.left_out == 1 ? "that" : "those") +
                                   " it is not (" + trials.text(s.control) + ")"
                             : "") +
           ". ";
  else if (s.earlier == Standing::out_of_range)
    text = "Its batch is out of range without the updates of " + steps_text(v, s.left_out) + " as well (" +
           trials.text(s.without) + "). ";
  if (s.undone)
    text += "Undoing what step " + std::to_string(*s.undone) +
            " wrote into weights or moments outside of its update brings it back. ";
  if (s.rate)
    text += "Updates with at most the learning rate " + number_text(*s.rate) + " (the largest was " +
            number_text(s.rate_before) + ") bring it back. ";
  if (s.moments) text += "So does an optimizer's state that is reset when the tape begins. ";
  if (!s.slower.empty() && f.after == Aftermath::left)
    text += s.slower + " from the tape's beginning keeps the loss in its range. ";
  if (s.placebo_helped) text += "But the last bit of a weight changes the result, too. ";
  return text;
}

std::string wide_sentence(const SpikeFindings& f, const SpikeTrials& trials) {
  if (f.wide.format.empty()) return "";
  return f.wide.helps ? "In " + f.wide.format + " the step is in its usual range (" +
                            trials.text(f.wide.figures) + "). "
                      : "In " + f.wide.format + " it is the same (" + trials.text(f.wide.figures) + "). ";
}

std::string after_sentence(const SpikeFindings& f) {
  if (data_of(f) != Data::other_batch_too || f.after == Aftermath::open) return "";
  return f.after == Aftermath::left ? "In the run's next steps the loss did not come back. "
                                    : "In the run's next steps the loss came back. ";
}

/// What is left to decide between.
std::string open_sentence(const SpikeFindings& f) {
  const bool tape = f.state.not_tried.empty();
  const Standing state = with_other_state(f.state);
  switch (data_of(f)) {
    case Data::samples:
    case Data::whole_batch:
      if (state == Standing::in_range)
        return "Both help, other data and other weights: it is SPIKE_DATA or SPIKE_STATE. ";
      return tape ? "" : "It is SPIKE_DATA, unless the batch is in range on earlier weights (SPIKE_STATE). ";
    case Data::other_batch_too:
      if (!tape) return "So it is SPIKE_STATE or DIVERGENCE: its batch alone does not do it. ";
      if (state != Standing::in_range) return "";
      return f.after == Aftermath::left ? "It is SPIKE_STATE or DIVERGENCE: no smaller rate that was tried "
                                          "keeps the loss in its range. "
                                        : "It is DIVERGENCE if the loss left its range for good, otherwise "
                                          "SPIKE_STATE: the losses that "
                                          "the run recorded after it do not show which. ";
    case Data::unknown:
      return state == Standing::in_range ? "It is SPIKE_STATE, unless another batch is in range as well. "
                                         : "";
  }
  return "";
}

std::string advice_of(Label cause, const SpikeFindings& f, const Verdict& v) {
  switch (cause) {
    case Label::spike_data: {
      if (v.poison.empty()) return "Look at this batch and where its data come from.";
      std::string text = "Look at " + sample_names(v) + ".";
      if (!v.poison_ids.empty())
        text += " To train without " + std::string(v.poison_ids.size() == 1 ? "it" : "them") +
                ", write its index into a file, one a line, and run with --quarantine FILE.";
      return text;
    }
    case Label::spike_state:
      if (f.state.undone)
        return "Look at what wrote into weights or optimizer state at step " +
               std::to_string(*f.state.undone) + " outside of the update (a load, a swap, a reset).";
      if (f.state.rate) return "Look at the schedule of the learning rate around this step.";
      return "Look at the update of " + steps_text(v, f.state.left_out) +
             ": its moments (a resume, another beta2) and its learning rate; a clip limits what one update "
             "can do.";
    case Label::divergence:
      return "Train with a smaller learning rate or a longer warm-up: " +
             (f.state.rate ? "at most " + number_text(*f.state.rate) : f.state.slower) +
             " kept the loss in its range.";
    case Label::precision:
      return "Keep the step, or the part of it that needs it, in " + f.wide.format + ".";
    default:
      return f.state.not_tried.empty()
                 ? "Run it again with a longer --tape, or compare the step with a usual one: nanquest diff "
                   "(nanquest run --record-steps)."
                 : "Record the run with --tape: replay can then try the batch on earlier weights.";
  }
}

}  // namespace

void tell(const SpikeFindings& f, const SpikeTrials& trials, Verdict& v) {
  v.cause = decide(f);
  v.explanation = data_sentence(f, trials, v) + state_sentence(f, trials, v) + after_sentence(f) +
                  wide_sentence(f, trials);
  if (v.cause == Label::unknown) v.explanation += open_sentence(f);
  if (v.explanation.empty())
    v.explanation = "Nothing that was tried brings the step back into its usual range.";
  if (v.explanation.back() == ' ') v.explanation.pop_back();
  v.advice = advice_of(v.cause, f, v);
  v.confidence = spike_confidence(v.cause);
  v.origin = v.cause == Label::spike_data    ? Origin::input
             : v.cause == Label::spike_state ? (f.state.moments ? Origin::optimizer_state : Origin::parameter)
             : v.cause == Label::divergence  ? Origin::multi_step
                                             : Origin::op;
  if (v.cause == Label::spike_data || v.cause == Label::spike_state) v.phase = Phase::input;
}

}  // namespace nanquest
