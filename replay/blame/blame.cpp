#include "replay/blame/blame.h"

#include <algorithm>
#include <functional>

#include "probe/trace/births.h"
#include "replay/blame/first_look.h"
#include "replay/blame/harm.h"
#include "replay/blame/intended.h"
#include "replay/blame/smallest_set.h"
#include "replay/blame/spread.h"

namespace nanquest {
namespace {

class Search {
 public:
  Search(Lab& lab, const RunResult& recorded, TwinRun* twin)
      : lab_(lab),
        twin_(twin),
        harm_(lab.graph(), recorded),
        walk_(lab.graph()),
        sets_(lab, twin, harm_, blame_.intended) {}

  Blame run() {
    const TraceGraph& graph = lab_.graph();
    blame_.suspects = find_suspects(graph, walk_);
    if (!harm_.any() || blame_.suspects.empty()) return std::move(blame_);
    const PerRow<OpRow, bool> counts = ancestors(graph, TensorId{graph.doc().loss});
    const int before = lab_.runs();
    blame_.tried = true;
    std::vector<Suspect> open, meant;
    for (const Suspect& suspect : blame_.suspects) {
      if (open.size() >= kMaxSuspectsTried || !lab_.has_time()) break;
      if (!sets_.heals({suspect})) {
        // An intended infinity is not to blame merely because it appears in several layers.
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
    // An overflow that forward hid and whose derivatives did the harm: this op alone, not each of the
    // derivatives.
    if (blame_.set.empty()) blame_meant([&](const Suspect& s) { return sets_.is_overflow(s); });
    if (blame_.set.empty()) blame_.set = sets_.smallest_set(open);
    if (blame_.set.empty() && !meant.empty()) {
      open.insert(open.end(), meant.begin(), meant.end());
      sort_by_time(lab_.graph(), open);
      blame_.set = sets_.smallest_set(open);
    }
    if (blame_.set.empty() && !blame_.intended.empty() && is_said_to_be_meant(graph, blame_.intended.front()))
      blame_last_to_contain(blame_.intended.front().op);
    // The logarithm of a zero probability of the target class: nothing computed from it can be made harmless.
    // Constants and masks from outside are still intended.
    if (blame_.set.empty())
      blame_meant(
          [&](const Suspect& s) { return !s.row && !bad_constants(lab_.graph().doc(), s.op).infinite; });
    if (!blame_.set.empty()) blame_.assumed = sets_.assumed();
    blame_.runs = lab_.runs() - before;
    return std::move(blame_);
  }

 private:
  /// What a constant or a mask says, or the same step on a healthy batch shows.
  bool is_known_to_be_meant(const Suspect& suspect) {
    return is_said_to_be_meant(lab_.graph(), suspect) || (twin_ && twin_->has_it_in_health(suspect));
  }

  /// The first of the possibly intended infinities whose replacement alone makes the step finite did the harm
  /// after all.
  void blame_meant(const std::function<bool(const Suspect&)>& which) {
    const auto found = std::find_if(blame_.intended.begin(), blame_.intended.end(), which);
    if (found == blame_.intended.end()) return;
    blame_.set = {*found};
    blame_.intended.erase(found);
  }

  /// An intended infinity did harm where it was spread. Returns the last op that passed it on before that, if
  /// the step is finite without that op's bad values.
  void blame_last_to_contain(OpId root) {
    for (const OpId op : handed_on_by(lab_.graph(), root)) {
      const Suspect suspect{op, {}, {.infinite = true}};
      if (!lab_.has_time() || !sets_.heals({suspect})) return;
      blame_.set = {suspect};
    }
  }

  /// One op made NaN from infinities (a clip divided by an infinite norm), and the step would be finite
  /// without it. But if those infinities are numbers too large for their format, which are never intended,
  /// the ops where they overflowed come first: returns the smallest sufficient set of them; empty if there
  /// are none, or all together are not enough.
  std::vector<Suspect> overflows_behind(const Suspect& suspect, const std::vector<Suspect>& earlier) {
    if (suspect.row || !suspect.kinds.nan || suspect.kinds.infinite) return {};
    return sets_.smallest_set(
        sets_.before(suspect.op, earlier, [&](const Suspect& s) { return sets_.is_overflow(s); }));
  }

  Lab& lab_;
  TwinRun* twin_;
  Harm harm_;
  Walk walk_;
  Blame blame_;
  SetSearch sets_;
};

}  // namespace

Blame find_blame(Lab& lab, const RunResult& recorded, TwinRun* twin) {
  try {
    return Search(lab, recorded, twin).run();
  } catch (const std::exception&) {  // out of memory: nothing was shown
    return {};
  }
}

}  // namespace nanquest
