/// rehearsed: the losses of the runs that a rehearsal made of an incident (replay/verdict/rehearsal.h), ready
/// to be drawn beside those of the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/verdict/rehearsal.h"
#include "viewer/model/history.h"
#include "viewer/model/page.h"

namespace nanquest::viewer {

/// One run of a rehearsal.
struct RehearsedCurve {
  RehearsedKind kind = RehearsedKind::unchanged;
  std::string name;    ///< "unchanged", "control: the last bit of fc.weight[17], seed 2", "lr=*0.5"
  std::string result;  ///< "bad at step 145", "good to step 209: cures it"
  bool cures = false;
  History history;  ///< its steps, with the one scalar "loss"

  /// Its losses; null of a run that has none.
  const Pyramid* losses() const { return history.empty() ? nullptr : history.scalar("loss"); }
};

/// All runs that were made, in that order; those that could not be made say why in `result`.
std::vector<RehearsedCurve> rehearsed_curves(const Rehearsal& rehearsal);
/// Those of the rehearsal beside `snapshot`; none where there is no file, or it is of another step or rank.
/// `error`: why one that is there can't be read.
std::vector<RehearsedCurve> read_rehearsed(const std::string& snapshot, std::int64_t step, std::int32_t rank,
                                           std::string& error);
/// A row a run; no rows without any.
PageTable rehearsed_table(const std::vector<RehearsedCurve>& curves);

}  // namespace nanquest::viewer
