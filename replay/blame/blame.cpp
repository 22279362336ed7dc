#include "replay/blame/blame.h"

#include <algorithm>

#include "replay/blame/harm.h"
#include "replay/blame/intended.h"
#include "replay/blame/neutral.h"
#include "replay/lab/ddmin.h"

namespace nanquest {
namespace {

/// More suspects than these are not tried one by one: what goes wrong everywhere is told by its first places.
constexpr std::size_t kMaxTried = 48;
constexpr int kMaxSetRuns = 40;

class Search {
 public:
  Search(Lab& lab, const RunResult& recorded) : lab_(lab), harm_(lab.graph(), recorded), walk_(lab.graph()) {}

  Blame run() {
    const TraceGraph& graph = lab_.graph();
    blame_.suspects = find_suspects(graph, walk_);
    if (!harm_.any() || blame_.suspects.empty()) return std::move(blame_);
    const PerRow<OpRow, bool> counts = ancestors(graph, TensorId{graph.doc().loss});
    const int before = lab_.runs();
    blame_.tried = true;
    std::vector<Suspect> open;
    for (const Suspect& suspect : blame_.suspects) {
      if (open.size() >= kMaxTried || !lab_.has_time()) break;
      if (!heals({suspect})) {
        open.push_back(suspect);
      } else if (is_intended(lab_, suspect, counts)) {
        blame_.intended.push_back(suspect);
      } else {
        blame_.set = {suspect};
        break;
      }
    }
    if (blame_.set.empty()) blame_.set = smallest_set(open);
    blame_.runs = lab_.runs() - before;
    return std::move(blame_);
  }

 private:
  bool heals(const std::vector<Suspect>& set) {
    for (const Neutral neutral : {Neutral::above, Neutral::zero, Neutral::one}) {
      RunOptions options;
      options.stop_when_harmed = true;
      for (const Suspect& suspect : set) neutralise(lab_.graph(), suspect, neutral, options.edit);
      if (harm_.undone_by(lab_.run(options))) return true;
    }
    return false;
  }

  /// Nobody did it alone: the smallest set of them whose neutralisation heals; empty if not even all do.
  std::vector<Suspect> smallest_set(const std::vector<Suspect>& open) {
    if (open.size() < 2 || !lab_.has_time() || !heals(open)) return {};
    return ddmin<Suspect>(
        open, [&](const std::vector<Suspect>& set) { return lab_.has_time() && heals(set); }, kMaxSetRuns);
  }

  Lab& lab_;
  Harm harm_;
  Walk walk_;
  Blame blame_;
};

}  // namespace

Blame find_blame(Lab& lab, const RunResult& recorded) {
  try {
    return Search(lab, recorded).run();
  } catch (const std::exception&) {  // memory is exhausted: nothing was shown
    return {};
  }
}

}  // namespace nanquest
