#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/session.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {

Result<std::string> runs_csv(Session& session) {
  std::ostringstream out;
  out << "step,rank,attempt,gate,cause,confidence,summary,snapshot,verdict\n";
  for (const IncidentEntry& e : session.incidents())
    record(out, std::to_string(e.files.step), std::to_string(e.files.rank), std::to_string(e.files.attempt),
           e.gate, e.cause, exact_number(e.confidence), e.summary, e.files.snapshot, e.files.verdict);
  return out.str();
}

}  // namespace nanquest::viewer
