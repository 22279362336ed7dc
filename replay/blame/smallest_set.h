/// smallest_set: is the step well without the bad values of these suspects, and which of them are enough?
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

/// More suspects than these are not tried one by one: what goes wrong everywhere is told by its first places.
inline constexpr std::size_t kMaxSuspectsTried = 48;

/// Which suspects are enough to heal a step. `intended`, which may grow between calls, is never in a set.
class SetSearch {
 public:
  /// All of these outlive it; `twin` may be null.
  SetSearch(Lab& lab, TwinRun* twin, const Harm& harm, const std::vector<Suspect>& intended)
      : lab_(lab), twin_(twin), harm_(harm), intended_(intended), own_(lab.graph()) {}

  /// The step is well with harmless values in the place of theirs, of one kind or another (Neutral).
  bool heals(const std::vector<Suspect>& set);

  /// Of suspects of which none heals alone: the smallest set of them that does, with what their bad values
  /// hid as far as it is needed; empty if not even all of them do.
  std::vector<Suspect> smallest_set(std::vector<Suspect> open);

  /// Those of `suspects` that `op` was computed from.
  std::vector<Suspect> before(OpId op, const std::vector<Suspect>& suspects,
                              const std::function<bool(const Suspect&)>& which) const;

  /// Collectives for which this rank's own part stood for everybody's (OwnParts).
  std::vector<OpId> assumed() const { return own_.assumed(); }

  /// An op that left the range of its format.
  bool is_overflow(const Suspect& suspect) const;

 private:
  /// What only shows without others, and those that it was computed from and that nobody means. It can't
  /// stand for them: the mean of what a square overflowed to, the norm of what NaN weights gave.
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
  /// The step is well without `open` (which may lose what came from outside), or else without it and what
  /// shows only then, which `hidden` gets.
  bool heals_with_hidden(std::vector<Suspect>& open, std::vector<Suspect>& hidden);
  /// Those that made no NaN out of infinities that others of them had made: that follows from them.
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
