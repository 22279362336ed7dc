/// together: several ranks of one step judged as one event.
///
///     std::vector<OpenRank> ranks;                       // one a file
///     const RanksVerdict v = judge_together(ranks, {});
///
/// The first rank to blame is found as for a single file (ranks.h). Then all run together
/// (replay/trace/together.h): once as recorded, which says by which collectives bad values went on and
/// whether these are what was recorded; and once with the first bad value alone made harmless, every
/// collective computed anew, which proves that it was this value. A single rank's file can't prove that: what
/// other ranks gave is in it as it was.
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

/// `usage` unless they are files of one step of one run of several processes, each of another rank. One may
/// be all that is left of it.
Status one_step(const std::vector<OpenRank>& ranks);

/// `ranks` is what one_step accepts. `say` (may be empty) is told what is done now.
RanksVerdict judge_together(const std::vector<OpenRank>& ranks,
                            const std::function<void(const std::string&)>& say);

}  // namespace nanquest
