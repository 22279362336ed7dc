#include "replay/blame/blame.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "probe/trace/births.h"
#include "replay/blame/first_look.h"
#include "replay/blame/harm.h"
#include "replay/blame/intended.h"
#include "replay/blame/neutral.h"
#include "replay/blame/range_overflow.h"
#include "replay/blame/spread.h"
#include "replay/lab/ddmin.h"

namespace nanquest {
namespace {

/// More suspects than these are not tried one by one: what goes wrong everywhere is told by its first places.
constexpr std::size_t kMaxTried = 48;
constexpr int kMaxSetRuns = 40, kMaxRounds = 12;

class Search {
 public:
  Search(Lab& lab, const RunResult& recorded, TwinRun* twin)
      : lab_(lab), twin_(twin), harm_(lab.graph(), recorded), walk_(lab.graph()) {}

  Blame run() {
    const TraceGraph& graph = lab_.graph();
    blame_.suspects = find_suspects(graph, walk_);
    if (!harm_.any() || blame_.suspects.empty()) return std::move(blame_);
    const PerRow<OpRow, bool> counts = ancestors(graph, TensorId{graph.doc().loss});
    const int before = lab_.runs();
    blame_.tried = true;
    std::vector<Suspect> open, meant;
    for (const Suspect& suspect : blame_.suspects) {
      if (open.size() >= kMaxTried || !lab_.has_time()) break;
      if (!heals({suspect})) {
        // What is meant in each of several layers is no more to blame for being there more than once.
        (is_known_to_be_meant(suspect) ? meant : open).push_back(suspect);
      } else if (is_known_to_be_meant(suspect) || is_intended(lab_, suspect, counts)) {
        blame_.intended.push_back(suspect);
      } else {
        blame_.set = overflows_behind(suspect, open);
        if (!blame_.set.empty()) break;
        blame_.set = {suspect};
        blame_.set.front().op = first_to_look(lab_, suspect);
        break;
      }
    }
    // An overflow that forward made nothing of, and derivatives did: it alone, rather than each of them
    // together.
    if (blame_.set.empty()) blame_meant([&](const Suspect& s) { return is_overflow(s); });
    if (blame_.set.empty()) blame_.set = smallest_set(open);
    if (blame_.set.empty() && !meant.empty()) {
      open.insert(open.end(), meant.begin(), meant.end());
      sort_by_time(lab_.graph(), open);
      blame_.set = smallest_set(open);
    }
    if (blame_.set.empty() && !blame_.intended.empty() && is_said_to_be_meant(graph, blame_.intended.front()))
      blame_last_to_contain(blame_.intended.front().op);
    // The logarithm of a probability of zero, of the very class that is right: nothing that came of it can be
    // made harmless. What a constant or a mask from outside says is still meant.
    if (blame_.set.empty())
      blame_meant(
          [&](const Suspect& s) { return !s.row && !bad_constants(lab_.graph().doc(), s.op).infinite; });
    blame_.runs = lab_.runs() - before;
    return std::move(blame_);
  }

 private:
  /// What a constant says, or a mask, or the same step on a healthy batch.
  bool is_known_to_be_meant(const Suspect& suspect) {
    return is_said_to_be_meant(lab_.graph(), suspect) || (twin_ && twin_->has_it_in_health(suspect));
  }

  bool is_overflow(const Suspect& suspect) const {
    return !suspect.row && (lab_.graph().op(suspect.op).flags & kOpBirthFiniteAbove);
  }

  /// The first of the infinities that might be meant, and that heal the step alone, did the harm after all.
  void blame_meant(const std::function<bool(const Suspect&)>& which) {
    const auto found = std::find_if(blame_.intended.begin(), blame_.intended.end(), which);
    if (found == blame_.intended.end()) return;
    blame_.set = {*found};
    blame_.intended.erase(found);
  }

  /// What was put in on purpose did harm where it was spread: the last op to hand it on before that, if the
  /// step is well without what it hands on.
  void blame_last_to_contain(OpId root) {
    for (const OpId op : handed_on_by(lab_.graph(), root)) {
      const Suspect suspect{op, {}, {.infinite = true}};
      if (!lab_.has_time() || !heals({suspect})) return;
      blame_.set = {suspect};
    }
  }

  RunResult without(const std::vector<Suspect>& set, Neutral neutral, bool to_the_end) {
    RunOptions options;
    options.stop_when_harmed = !to_the_end;
    for (const Suspect& suspect : set)
      neutralise(lab_.graph(), suspect, neutral, options.edit,
                 [&](SlotId slot) { return twin_ ? twin_->values_of(slot) : std::nullopt; });
    return lab_.run(options);
  }

  /// The last healthy step had another value in the place of one of these.
  bool has_donor(const std::vector<Suspect>& set) const {
    return twin_ && std::any_of(set.begin(), set.end(), [&](const Suspect& s) {
             const SlotId slot = s.row ? lab_.graph().slot(s.row) : SlotId{};
             return slot && twin_->values_of(slot).has_value();
           });
  }

  bool heals(const std::vector<Suspect>& set) {
    for (const Neutral neutral : {Neutral::above, Neutral::zero, Neutral::one})
      if (harm_.undone_by(without(set, neutral, false))) return true;
    // A batch of nothing but NaN has no finite neighbours, and with one number everywhere it is degenerate.
    return has_donor(set) && harm_.undone_by(without(set, Neutral::healthy, false));
  }

  /// One op made NaN of infinities (a clip divided by an infinite norm), and alone would be well without it.
  /// But if those were numbers too large for their format, which nobody means, the ops that they left it at
  /// come first: the smallest set of them that heals; empty if there are none, or not even all of them do.
  std::vector<Suspect> overflows_behind(const Suspect& suspect, const std::vector<Suspect>& earlier) {
    if (suspect.row || !suspect.kinds.nan || suspect.kinds.infinite) return {};
    return smallest_set(before(suspect.op, earlier, [&](const Suspect& s) { return is_overflow(s); }));
  }

  /// Ops that make bad values of their own once those of `set` are gone, which are not in it.
  std::vector<Suspect> hidden_by(const std::vector<Suspect>& set) {
    std::vector<Suspect> found;
    for (const Suspect& suspect : makers_in(lab_.graph(), without(set, Neutral::above, true)))
      if (set.size() + found.size() < kMaxTried && std::find(set.begin(), set.end(), suspect) == set.end() &&
          std::find(blame_.intended.begin(), blame_.intended.end(), suspect) == blame_.intended.end() &&
          !bad_constants(lab_.graph().doc(), suspect.op).infinite)
        found.push_back(suspect);
    return found;
  }

  /// Nobody means numbers too large for their format. Nor a tensor of nothing but NaN that was there before
  /// the step; and as any one number in the place of all of it is degenerate, what only shows then (a norm of
  /// 0) may be of the replacement's making.
  bool is_never_meant(const Suspect& suspect) const {
    if (!suspect.row) return is_overflow(suspect);
    const StatsRow* stats = lab_.graph().stats(suspect.row);
    return stats && stats->nan == stats->count;
  }

  /// What only shows without others, and those that it was computed from and that nobody means. It can't
  /// stand for them: the mean of what a square overflowed to, the norm of what NaN weights gave.
  struct Hidden {
    Suspect suspect;
    std::vector<Suspect> behind;
  };
  std::vector<Hidden> with_reasons(const std::vector<Suspect>& hidden,
                                   const std::vector<Suspect>& shown) const {
    std::vector<Hidden> found;
    found.reserve(hidden.size());
    for (const Suspect& h : hidden)
      found.push_back({h, before(h.op, shown, [&](const Suspect& s) { return is_never_meant(s); })});
    return found;
  }

  /// Those of `hidden` that may be replaced beside `set`.
  static std::vector<Suspect> freed_by(const std::vector<Suspect>& set, const std::vector<Hidden>& hidden) {
    std::vector<Suspect> found;
    for (const Hidden& h : hidden)
      if (std::all_of(h.behind.begin(), h.behind.end(),
                      [&](const Suspect& s) { return std::find(set.begin(), set.end(), s) != set.end(); }))
        found.push_back(h.suspect);
    return found;
  }

  /// Those of `suspects` that `op` was computed from.
  std::vector<Suspect> before(OpId op, const std::vector<Suspect>& suspects,
                              const std::function<bool(const Suspect&)>& which) const {
    const PerRow<OpRow, bool> made_of = ancestors(lab_.graph(), op);
    std::vector<Suspect> found;
    for (const Suspect& s : suspects)
      if (which(s) && made_of[s.op]) found.push_back(s);
    return found;
  }

  /// Nobody did it alone: the smallest set of them whose neutralisation heals, with what their bad values hid
  /// as far as it is needed; empty if not even all of them do.
  std::vector<Suspect> smallest_set(std::vector<Suspect> open) {
    if (open.empty()) return {};
    std::vector<Suspect> hidden, made;
    bool healed = heals(open);
    // An outside value that has nothing to do with it may do harm of its own when it is replaced.
    std::copy_if(open.begin(), open.end(), std::back_inserter(made), [](const Suspect& s) { return !s.row; });
    if (!healed && !made.empty() && made.size() < open.size() && heals(made)) open = made, healed = true;
    for (int round = 0; round < kMaxRounds && !healed && lab_.has_time(); ++round) {
      const std::vector<Suspect> more = hidden_by(joined(open, hidden));
      if (more.empty()) break;
      hidden.insert(hidden.end(), more.begin(), more.end());
      healed = heals(joined(open, hidden));
    }
    if (!healed) return {};
    if (std::none_of(open.begin(), open.end(), [&](const Suspect& s) { return is_never_meant(s); })) {
      // Any of them may have been meant.
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

  std::vector<Suspect> joined(std::vector<Suspect> a, const std::vector<Suspect>& b) const {
    a.insert(a.end(), b.begin(), b.end());
    sort_by_time(lab_.graph(), a);
    return a;
  }

  Lab& lab_;
  TwinRun* twin_;
  Harm harm_;
  Walk walk_;
  Blame blame_;
};

}  // namespace

Blame find_blame(Lab& lab, const RunResult& recorded, TwinRun* twin) {
  try {
    return Search(lab, recorded, twin).run();
  } catch (const std::exception&) {  // memory is exhausted: nothing was shown
    return {};
  }
}

}  // namespace nanquest
