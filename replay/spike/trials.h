/// trials: what was tried on a step that is out of its run's usual range, and whether it came back into it.
///
/// The limits are those of the run that recorded the step (probe/trace/spike_note.h): a figure that was
/// beyond the band's edge is back if it is at most half as far away as the edge. In between, nothing is
/// shown.
#pragma once

#include <string>
#include <vector>

#include "probe/trace/spike_note.h"
#include "replay/spike/figures.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

enum class Standing : std::uint8_t {
  unknown,  ///< it was not tried, or the run failed
  in_range,
  between,
  out_of_range,
};

class SpikeTrials {
 public:
  explicit SpikeTrials(const SpikeNote& note) : note_(note) {}

  const SpikeNote& note() const { return note_; }
  /// Where these figures are, by those that were out as recorded.
  Standing standing(const Figures& figures) const;
  /// How far out they are: 1 at the edge, 0 in the middle; of the figure that is farthest out.
  double distance(const Figures& figures) const;
  /// "loss 2.31, gradient norm 0.8": those that were out.
  std::string text(const Figures& figures) const;
  /// Whether the step as replayed has the figures that its gate saw. Otherwise trials say nothing of it.
  bool same_as_recorded(const Figures& replayed) const;

  /// Notes a trial for the verdict and returns its standing.
  Standing add(std::string change, ChangeKind kind, const Figures& figures);
  const std::vector<Counterfactual>& tried() const { return tried_; }

 private:
  SpikeNote note_;
  std::vector<Counterfactual> tried_;
};

}  // namespace nanquest
