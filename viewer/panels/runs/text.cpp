#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/lines.h"

namespace nanquest::viewer {

std::string runs_text(Session& session) {
  std::string out = session.path() + "\n";
  if (!session.manifest_error().empty()) out += session.manifest_error() + "\n";
  paragraph(out, "status", session.status());
  if (const auto& m = session.manifest()) {
    paragraph(out, "command", m->command);
    paragraph(out, "created", m->created);
    if (m->world_size > 1) paragraph(out, "ranks", std::to_string(m->world_size));
  }
  if (!session.series_error().empty()) out += session.series_error() + "\n";
  const std::size_t incidents = session.incidents().size();
  out += (incidents == 0 ? verdict_page(session).headline : counted(incidents, "incident")) + "\n";
  for (const IncidentEntry& e : session.incidents()) {
    put(out, "  step {}, rank {}", e.files.step, e.files.rank);
    if (e.files.attempt > 1) put(out, ", attempt {}", e.files.attempt);
    put(out, ": {}{}{}\n", e.standing(), e.summary.empty() ? "" : ". ", e.summary);
    if (e.snapshot != Snapshot::never_written)
      put(out, "    {}\n", e.error.empty() ? e.files.snapshot : e.error);
  }
  return out;
}

}  // namespace nanquest::viewer
