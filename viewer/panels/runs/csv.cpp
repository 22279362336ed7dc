#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/run_state.h"
#include "viewer/model/session.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {

namespace {

/// With a second run beside it: what differs, one line each.
std::string comparison_csv(const Comparison& c) {
  std::ostringstream out;
  record(out, std::string("kind"), std::string("what"), c.here, c.there);
  const auto line = [&](const std::string& kind, const std::string& what, const std::string& a,
                        const std::string& b) { record(out, kind, what, one_line(a), one_line(b)); };
  for (const Difference& d : c.settings) line("setting", d.what, d.here, d.there);
  for (const SeriesDifference& s : c.series)
    if (s.at)
      line("series", "first difference of " + s.name + " (step " + exact_number(*s.at) + ")",
           exact_number(s.here), exact_number(s.there));
  for (const std::string& name : c.only_here) line("series", name, "on record", "-");
  for (const std::string& name : c.only_there) line("series", name, "-", "on record");
  for (const Difference& d : c.incidents) line("incident", d.what, d.here, d.there);
  return out.str();
}

/// Of a folder: a line a run, with its path.
std::string folder_csv(const RunFolder& folder) {
  std::ostringstream out;
  out << "run,cause,incidents,last_step,written,status,outcome,command,path\n";
  for (const RunLine& run : folder.runs)
    record(out, run.name, run.cause, std::to_string(run.incidents),
           run.last_step ? exact_number(*run.last_step) : "", utc_text(run.written), run.state,
           one_line(run.outcome), one_line(run.command), run.path);
  return out.str();
}

}  // namespace

Result<std::string> runs_csv(Session& session) {
  if (session.folder() != nullptr) return folder_csv(*session.folder());
  if (session.comparison() != nullptr) return comparison_csv(*session.comparison());
  std::ostringstream out;
  out << "step,rank,attempt,gate,cause,confidence,summary,snapshot,verdict\n";
  for (const IncidentEntry& e : session.incidents())
    record(out, std::to_string(e.files.step), std::to_string(e.files.rank), std::to_string(e.files.attempt),
           e.gate, e.cause, exact_number(e.confidence), e.summary, e.files.snapshot, e.files.verdict);
  return out.str();
}

}  // namespace nanquest::viewer
