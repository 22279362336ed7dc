/// The sentences of the verdict page, one question each.
#pragma once

#include <string>

#include "viewer/model/verdict_page.h"

namespace nanquest::viewer {

/// "aten::mm in blocks.3.mlp made the first +Inf at step 131", or "made +Inf" unless it is the `first`; if a
/// collective brought it, the rank that made it: "Rank 1's NaN came by c10d::allreduce_ at step 132".
std::string headline(const Verdict& v, bool first = true);
/// How many bad values of which kind, where, the first at which index.
std::string what(const Verdict& v);
/// Phase, module, backward node, op and the program's own line.
std::string where(const Verdict& v);
/// "sample 3 (train.txt@96) of samples 0 to 7": an index, not a count. "" if none is to blame.
std::string samples_text(const Verdict& v);
/// The fix that was tried on this very step, or that there is none.
Fact fix_fact(const Verdict& v);
/// Advice besides the change that was tried, which is the fact before it. "" if there is none.
std::string advice_text(const Verdict& v);

}  // namespace nanquest::viewer
