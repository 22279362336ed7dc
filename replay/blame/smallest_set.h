/// smallest_set: is the step finite without the bad values of these suspects, and which of them are enough?
#pragma once

#include <functional>
#include <vector>

#include "probe/trace/walk.h"
#include "replay/blame/harm.h"
#include "replay/blame/neutral.h"
#include "replay/blame/own_part.h"
#include "replay/blame/suspects.h"
#include "replay/blame/twin.h"
#include "replay/lab/lab.h"

namespace nanquest {

/// More suspects than this are not tried one by one: if values go wrong everywhere, the first places are
/// enough.
inline constexpr std::size_t kMaxSuspectsTried = 48;

/// Which suspects are enough to make a step finite. `intended`, which may grow between calls, is never in a
/// set.
class SetSearch {
 public:
  /// All of these must outlive it; `twin` may be null.
  SetSearch(Lab& lab, TwinRun* twin, const Harm& harm, const std::vector<Suspect>& intended)
      : lab_(lab), twin_(twin), harm_(harm), intended_(intended), own_(lab.graph()) {}

  /// Whether the step is finite with harmless values in place of theirs, of one kind or another (Neutral).
  bool heals(const std::vector<Suspect>& set);

  /// For suspects of which none is enough alone: the smallest sufficient set, including what their bad values
  /// hid if needed; empty if all together are not enough.
  std::vector<Suspect> smallest_set(std::vector<Suspect> open);

  /// Those of `suspects` from which `op` was computed.
  std::vector<Suspect> before(OpId op, const std::vector<Suspect>& suspects,
                              const std::function<bool(const Suspect&)>& which) const;

  /// Collectives for which this rank's own part was used for all ranks (OwnParts).
  std::vector<OpId> assumed() const { return own_.assumed(); }

  /// An op whose result left the range of its format.
  bool is_overflow(const Suspect& suspect) const;

 private:
  /// What becomes bad only without others, and was computed from values that are never intended. It can't
  /// take their place: the mean of what a square overflowed to, the norm of NaN weights.
  struct Hidden {
    Suspect suspect;
    std::vector<Suspect> behind;
  };

  RunResult without(const std::vector<Suspect>& set, Neutral neutral, bool to_the_end);
  bool has_donor(const std::vector<Suspect>& set) const;
  bool is_never_meant(const Suspect& suspect) const;
  std::vector<Suspect> hidden_by(const std::vector<Suspect>& set);
  std::vector<Hidden> with_reasons(const std::vector<Suspect>& hidden,
                                   const std::vector<Suspect>& shown) const;
  /// Whether the step is finite without `open` (which may lose what came from outside), or without it and
  /// what becomes bad only then, which is added to `hidden`.
  bool heals_with_hidden(std::vector<Suspect>& open, std::vector<Suspect>& hidden);
  /// Without those that made NaN from infinities which others of them had made: that is a consequence.
  std::vector<Suspect> without_consequences(std::vector<Suspect> open) const;
  static std::vector<Suspect> freed_by(const std::vector<Suspect>& set, const std::vector<Hidden>& hidden);
  std::vector<Suspect> joined(std::vector<Suspect> a, const std::vector<Suspect>& b) const;

  Lab& lab_;
  TwinRun* twin_;
  const Harm& harm_;
  const std::vector<Suspect>& intended_;
  OwnParts own_;
};

}  // namespace nanquest
