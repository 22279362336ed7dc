#include "replay/spike/decision.h"

namespace nanquest {
namespace {

using Data = DataResult::Verdict;

/// Of one update, or of what was written outside of updates, rather than of many.
constexpr std::int64_t kFewUpdates = 2;

/// Where the weights are why, every sample is far out, and without many of them the step may be in range too.
bool few_samples(const DataResult& data) {
  return 4 * static_cast<std::int64_t>(data.samples.size()) <= data.of;
}

/// Whatever became of the loss, no rate of many updates is why.
bool one_update(const StateResult& state) {
  return !state.rate && (state.undone || (state.left_out <= kFewUpdates && state.control_failed));
}

/// A rate that was raised shows in one update whether it was raised for that one or from then on: only what
/// became of the loss tells SPIKE_STATE from DIVERGENCE.
Label state_or_divergence(const SpikeFindings& f) {
  const bool in_range = with_other_state(f.state) == Standing::in_range;
  if (in_range && one_update(f.state)) return Label::spike_state;
  const bool slower = !f.state.slower.empty() || f.state.rate;
  switch (f.after) {
    case Aftermath::came_back:
      return in_range ? Label::spike_state : Label::unknown;
    case Aftermath::left:
      return slower && !f.state.placebo_helped ? Label::divergence : Label::unknown;
    case Aftermath::open:
      return Label::unknown;
  }
  return Label::unknown;
}

}  // namespace

Standing with_other_state(const StateResult& state) {
  if (!state.not_tried.empty() || state.placebo_helped) return Standing::unknown;
  if (state.undone || (state.earlier == Standing::in_range && state.control_failed))
    return Standing::in_range;
  if (state.earlier == Standing::in_range)
    return state.moments || !state.slower.empty() ? Standing::in_range : Standing::between;
  return state.earlier;
}

Data data_of(const SpikeFindings& f) {
  // An update may fit the batch that it was made for, and no other.
  const bool open = f.data.verdict == Data::unknown || f.data.verdict == Data::whole_batch;
  if (!open || f.state.other_batch == Standing::unknown) return f.data.verdict;
  if (f.state.other_batch == Standing::out_of_range || f.state.other_batch == Standing::between)
    return Data::other_batch_too;
  return f.state.other_batch == Standing::in_range ? Data::whole_batch : Data::unknown;
}

Label decide(const SpikeFindings& f) {
  if (f.wide.helps && !f.wide.placebo_helped) return Label::precision;
  const Standing state = with_other_state(f.state);
  const bool tape = f.state.not_tried.empty() && !f.state.placebo_helped;
  switch (data_of(f)) {
    case Data::samples:
      if (state == Standing::out_of_range) return Label::spike_data;
      return state == Standing::unknown && few_samples(f.data) ? Label::spike_data : Label::unknown;
    case Data::whole_batch:
      return tape && state == Standing::out_of_range ? Label::spike_data : Label::unknown;
    case Data::other_batch_too:
      return state_or_divergence(f);
    case Data::unknown:
      return Label::unknown;
  }
  return Label::unknown;
}

}  // namespace nanquest
