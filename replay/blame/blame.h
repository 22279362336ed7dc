/// blame: which bad values did the harm? Found by experiment: a suspect is to blame if the step is finite
/// after only its bad values are replaced by harmless ones.
///
///     Lab lab(replayer);
///     const Blame blame = find_blame(lab, recorded);
///     if (!blame.set.empty()) say(graph.op(blame.set.front().op).name);
#pragma once

#include <cstdint>
#include <vector>

#include "replay/blame/suspects.h"
#include "replay/blame/twin.h"
#include "replay/lab/lab.h"

namespace nanquest {

/// What is to blame for the harm in a step.
struct Blame {
  /// The smallest set found whose neutralisation makes the step finite, in the order of the step; the first
  /// one is the culprit. Empty if nothing that was tried made it finite.
  std::vector<Suspect> set;
  /// Infinities that were put in on purpose: the step has them on a healthy batch too, what is computed from
  /// them elsewhere is finite, or a constant says so. Replacing them would make the step finite too; the
  /// first is to blame if nothing else is.
  std::vector<Suspect> intended;
  std::vector<Suspect> suspects;  ///< all of them, in order
  /// Collectives whose results rest on an assumption about the other ranks in those runs (OwnParts).
  std::vector<OpId> assumed;
  int runs = 0;        ///< of the step
  bool tried = false;  ///< false: there is no harm at the step's end that could be undone (a hidden
                       ///< overflow), or no time was left
};

/// `recorded` is the run as recorded; `twin` (may be null) shows which bad values a healthy step has too.
/// Never throws; ends when the lab's time does.
Blame find_blame(Lab& lab, const RunResult& recorded, TwinRun* twin = nullptr);

}  // namespace nanquest
