#include <algorithm>
#include <cmath>

#include "viewer/model/numbers.h"
#include "viewer/model/text_table.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/lines.h"

namespace nanquest::viewer {
namespace {

std::string range_text(const ValueRange& range) {
  std::string text = amax_text(range);
  if (range.has_headroom && std::isfinite(range.headroom)) put(text, " ({:+.1f} bits)", range.headroom);
  return text;
}

}  // namespace

/// Ops around the selected one; the whole trace is what --csv is for.
std::string trace_text(Session& session) {
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return verdict_page(session).headline + "\n";
  const TraceView& trace = incident->trace;
  const std::int32_t chosen = session.selection().op;
  const std::size_t centre = chosen == kNone ? 0 : static_cast<std::size_t>(chosen);
  const std::size_t first = centre > 20 ? centre - 20 : 0, last = std::min(trace.size(), centre + 21);
  std::string out = counted(trace.size(), "op") + " on record";
  if (last - first < trace.size()) put(out, ", {} to {} shown", first, last - 1);
  out += '\n';
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = first; i < last; ++i) {
    const TraceLine l = trace.line(OpId{i});
    rows.push_back({std::to_string(i), static_cast<std::int32_t>(i) == chosen ? ">" : "",
                    mark_words(trace.mark(OpId{i})), std::string(phase_name(l.phase)), l.name, l.module,
                    l.read_formats + "->" + l.write_format, range_text(l.read), range_text(l.written),
                    bad_text(l.written.nan, l.written.pos_inf, l.written.neg_inf)});
  }
  out += text_table({{"op", true},
                     {""},
                     {"mark"},
                     {"phase"},
                     {"name"},
                     {"module"},
                     {"formats"},
                     {"read amax (room)"},
                     {"written amax (room)"},
                     {"not finite"}},
                    rows);
  if (const std::string source = chosen == kNone ? "" : trace.source(OpId{chosen}); !source.empty())
    put(out, "op {} comes from {}\n", chosen, source);
  return out;
}

}  // namespace nanquest::viewer
