/// together: several ranks of one step judged as one event.
///
///     std::vector<OpenRank> ranks;                       // one per file
///     const RanksVerdict v = judge_together(ranks, {});
///
/// The first rank to blame is found as for a single file (ranks.h). Then all ranks run together
/// (replay/trace/together.h): once as recorded, which shows by which collectives bad values spread and
/// whether their results are the recorded ones; and once with only the first bad value made harmless and
/// every collective computed anew, which proves that it was this value. A single rank's file can't prove
/// that, because it holds the results that came from other ranks as recorded.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/together.h"

namespace nanquest {

struct OpenRank {
  std::string file;
  Replayer replayer;
};

/// `usage` unless they are files of one step of one run of several processes, each of another rank. A single
/// remaining file is enough.
Status one_step(const std::vector<OpenRank>& ranks);

/// `ranks` must be accepted by one_step. `say` (may be empty) is called with what is done now.
RanksVerdict judge_together(const std::vector<OpenRank>& ranks,
                            const std::function<void(const std::string&)>& say);

}  // namespace nanquest
