/// formats: number formats as the reason why two steps part.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <vector>

#include "replay/diff/reason.h"
#include "replay/diff/report.h"

namespace nanquest::diff {

/// Pairs whose results have different floating formats; nothing if there are none.
std::optional<Formats> formats_of(const TraceGraph& a, const TraceGraph& b, const std::vector<OpPair>& pairs);

/// True if `a` has fewer bits than `b`; both floating.
bool is_narrower(at::ScalarType a, at::ScalarType b);

/// Why the whole step can't be run in fp64: "2 operations take their recorded values, first …". Empty if it
/// can.
std::string not_in_fp64(const Replayer& replayer);

/// What a run in a wider format showed.
struct Widened {
  std::string side;                ///< "A", "B" or "both"
  std::string format;              ///< "fp32", "fp64"
  std::string narrow_a, narrow_b;  ///< the narrowest formats that the ops write
};

/// Runs the ops that make the value at `first` (`ops_a`, `ops_b` and the pair itself) in a wider format:
/// those of the step whose format is narrower, as the other's; those of both, if the formats are alike. The
/// first run in which both steps agree within `first.limit`; nothing if there is none.
std::optional<Widened> try_formats(const Steps& steps, const FirstBeyond& first, const Edits& edits,
                                   const Edits& edits_of_b, const std::vector<OpId>& ops_a,
                                   const std::vector<OpId>& ops_b);

}  // namespace nanquest::diff
