#include "replay/spike/trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Of loss and norm: the gate adds in another order than replay, and in other formats.
constexpr double kSame = 0.02;

/// Calls `f` with the recorded figure and the one of a run, for each that was out.
template <class F>
void each_out(const SpikeNote& note, const Figures& figures, const F& f) {
  if (note.loss && note.loss->out) f("loss", *note.loss, figures.loss);
  if (note.norm && note.norm->out) f("gradient norm", *note.norm, figures.norm);
}

double distance_of(const SpikeFigure& usual, double value) {
  if (usual.middle > 0 && value > 0 && usual.edge > usual.middle)  // as Band compares them
    return std::log(value / usual.middle) / std::log(usual.edge / usual.middle);
  return usual.edge > usual.middle ? (value - usual.middle) / (usual.edge - usual.middle) : 0;
}

}  // namespace

Standing SpikeTrials::standing(const Figures& figures) const {
  if (!figures.failed.empty()) return Standing::unknown;
  bool known = true, back = true, out = false;
  each_out(note_, figures, [&](const char*, const SpikeFigure& usual, double value) {
    if (std::isnan(value)) known = false;
    back = back && value <= usual.back;
    out = out || value > usual.edge;
  });
  if (!known) return Standing::unknown;
  return out ? Standing::out_of_range : back ? Standing::in_range : Standing::between;
}

double SpikeTrials::distance(const Figures& figures) const {
  double most = 0;
  each_out(note_, figures, [&](const char*, const SpikeFigure& usual, double value) {
    if (std::isfinite(value)) most = std::max(most, distance_of(usual, value));
  });
  return most;
}

std::string SpikeTrials::text(const Figures& figures) const {
  std::string text;
  each_out(note_, figures, [&](const char* name, const SpikeFigure&, double value) {
    if (!std::isnan(value)) text += (text.empty() ? "" : ", ") + std::string(name) + " " + number_text(value);
  });
  return text;
}

bool SpikeTrials::same_as_recorded(const Figures& replayed) const {
  bool same = replayed.failed.empty();
  each_out(note_, replayed, [&](const char*, const SpikeFigure& usual, double value) {
    same = same && std::abs(value - usual.value) <= kSame * std::abs(usual.value);
  });
  return same;
}

Standing SpikeTrials::add(std::string change, ChangeKind kind, const Figures& figures) {
  const Standing where = standing(figures);
  const TrialResult result = where == Standing::unknown    ? TrialResult::failed
                             : where == Standing::in_range ? TrialResult::in_range
                                                           : TrialResult::out_of_range;
  Counterfactual trial{std::move(change), kind, result};
  trial.measured = figures.failed.empty() ? text(figures) : figures.failed.substr(0, 120);
  if (where == Standing::between) trial.measured += ", between the usual range and the edge";
  tried_.push_back(std::move(trial));
  return where;
}

}  // namespace nanquest
