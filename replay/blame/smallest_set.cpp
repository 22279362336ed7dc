#include "replay/blame/smallest_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "probe/trace/births.h"
#include "replay/lab/ddmin.h"

namespace nanquest {
namespace {

constexpr int kMaxSetRuns = 40, kMaxRounds = 12;

}  // namespace

bool SetSearch::is_overflow(const Suspect& suspect) const {
  return !suspect.row && (lab_.graph().op(suspect.op).flags & kOpBirthFiniteAbove);
}

RunResult SetSearch::without(const std::vector<Suspect>& set, Neutral neutral, bool to_the_end) {
  RunOptions options;
  options.stop_when_harmed = !to_the_end;
  own_.add_to(options.edit);
  for (const Suspect& suspect : set)
    neutralise(lab_.graph(), suspect, neutral, options.edit,
               [&](SlotId slot) { return twin_ ? twin_->values_of(slot) : std::nullopt; });
  return lab_.run(options);
}

/// The last healthy step had another value in the place of one of these.
bool SetSearch::has_donor(const std::vector<Suspect>& set) const {
  return twin_ && std::any_of(set.begin(), set.end(), [&](const Suspect& s) {
           const SlotId slot = s.row ? lab_.graph().slot(s.row) : SlotId{};
           return slot && twin_->values_of(slot).has_value();
         });
}

bool SetSearch::heals(const std::vector<Suspect>& set) {
  for (const Neutral neutral : {Neutral::above, Neutral::zero, Neutral::one})
    if (harm_.undone_by(without(set, neutral, false))) return true;
  // A batch of only NaN has no finite neighbours, and with one number everywhere it is degenerate.
  return has_donor(set) && harm_.undone_by(without(set, Neutral::healthy, false));
}

/// Ops outside `set` that make bad values of their own once those of `set` are replaced.
std::vector<Suspect> SetSearch::hidden_by(const std::vector<Suspect>& set) {
  std::vector<Suspect> found;
  for (const Suspect& suspect : makers_in(lab_.graph(), without(set, Neutral::above, true)))
    if (set.size() + found.size() < kMaxSuspectsTried &&
        std::find(set.begin(), set.end(), suspect) == set.end() &&
        std::find(intended_.begin(), intended_.end(), suspect) == intended_.end() &&
        !bad_constants(lab_.graph().doc(), suspect.op).infinite)
      found.push_back(suspect);
  return found;
}

/// Numbers too large for their format are never intended, nor is a tensor of only NaN that existed before the
/// step. A single number in place of all of it is degenerate, so what only then becomes bad (a norm of 0) may
/// be caused by the replacement.
bool SetSearch::is_never_meant(const Suspect& suspect) const {
  if (!suspect.row) return is_overflow(suspect);
  const StatsRow* stats = lab_.graph().stats(suspect.row);
  return stats && stats->nan == stats->count;
}

std::vector<SetSearch::Hidden> SetSearch::with_reasons(const std::vector<Suspect>& hidden,
                                                       const std::vector<Suspect>& shown) const {
  std::vector<Hidden> found;
  found.reserve(hidden.size());
  for (const Suspect& h : hidden)
    found.push_back({h, before(h.op, shown, [&](const Suspect& s) { return is_never_meant(s); })});
  return found;
}

/// Those of `hidden` that may be replaced together with `set`.
std::vector<Suspect> SetSearch::freed_by(const std::vector<Suspect>& set, const std::vector<Hidden>& hidden) {
  std::vector<Suspect> found;
  for (const Hidden& h : hidden)
    if (std::all_of(h.behind.begin(), h.behind.end(),
                    [&](const Suspect& s) { return std::find(set.begin(), set.end(), s) != set.end(); }))
      found.push_back(h.suspect);
  return found;
}

std::vector<Suspect> SetSearch::before(OpId op, const std::vector<Suspect>& suspects,
                                       const std::function<bool(const Suspect&)>& which) const {
  const PerRow<OpRow, bool> made_of = ancestors(lab_.graph(), op);
  std::vector<Suspect> found;
  for (const Suspect& s : suspects)
    if (which(s) && made_of[s.op]) found.push_back(s);
  return found;
}

std::vector<Suspect> SetSearch::without_consequences(std::vector<Suspect> open) const {
  const std::vector<Suspect> all = open;
  std::erase_if(open, [&](const Suspect& s) {
    return !s.row && !s.kinds.infinite && lab_.graph().read_counts(s.op).total() > 0 &&
           !before(s.op, all, [&](const Suspect& o) { return o.kinds.infinite && !(o == s); }).empty();
  });
  return open;
}

bool SetSearch::heals_with_hidden(std::vector<Suspect>& open, std::vector<Suspect>& hidden) {
  bool healed = heals(open);
  // An unrelated outside value may do harm of its own when it is replaced.
  std::vector<Suspect> made;
  std::copy_if(open.begin(), open.end(), std::back_inserter(made), [](const Suspect& s) { return !s.row; });
  if (!healed && !made.empty() && made.size() < open.size() && heals(made)) open = made, healed = true;
  for (int round = 0; round < kMaxRounds && !healed && lab_.has_time(); ++round) {
    const std::vector<Suspect> more = hidden_by(joined(open, hidden));
    if (more.empty()) break;
    hidden.insert(hidden.end(), more.begin(), more.end());
    healed = heals(joined(open, hidden));
  }
  return healed;
}

std::vector<Suspect> SetSearch::smallest_set(std::vector<Suspect> open) {
  if (open.empty()) return {};
  std::vector<Suspect> reasons = without_consequences(open), hidden;
  if (reasons.size() < open.size() && heals_with_hidden(reasons, hidden)) {
    open = std::move(reasons);
  } else {
    hidden.clear();
    if (!heals_with_hidden(open, hidden)) return {};
  }
  if (std::none_of(open.begin(), open.end(), [&](const Suspect& s) { return is_never_meant(s); })) {
    // Any of them may be intended.
    open = joined(open, hidden);
    hidden.clear();
  }
  const std::vector<Hidden> known = with_reasons(hidden, open);
  open = ddmin<Suspect>(
      open, [&](const auto& set) { return lab_.has_time() && heals(joined(set, freed_by(set, known))); },
      kMaxSetRuns);
  hidden = freed_by(open, known);
  if (hidden.empty() || heals(open)) return open;
  hidden = ddmin<Suspect>(
      hidden, [&](const auto& set) { return lab_.has_time() && heals(joined(open, set)); }, kMaxSetRuns);
  return joined(open, hidden);
}

std::vector<Suspect> SetSearch::joined(std::vector<Suspect> a, const std::vector<Suspect>& b) const {
  a.insert(a.end(), b.begin(), b.end());
  sort_by_time(lab_.graph(), a);
  return a;
}

}  // namespace nanquest
