#include <cmath>
#include <optional>
#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/run_state.h"
#include "viewer/model/session.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {

namespace {

/// With runs beside it: what differs, one line each, a column for each run.
std::string comparison_csv(const Comparison& c) {
  std::ostringstream out;
  const auto line = [&](const std::string& kind, const std::string& what,
                        const std::vector<std::string>& values) {
    out << csv_field(kind) << ',' << csv_field(what);
    for (const std::string& value : values) out << ',' << csv_field(one_line(value));
    out << '\n';
  };
  // Of the open run and one other; nothing is said of the rest.
  const auto pair = [&](std::size_t other, const std::string& what, const std::string& here,
                        const std::string& there) {
    std::vector<std::string> values(c.runs.size());
    values[0] = here;
    values[other + 1] = there;
    line("series", what, values);
  };
  line("kind", "what", c.runs);
  for (const Difference& d : c.settings) line("setting", d.what, d.values);
  for (std::size_t i = 0; i < c.pairs.size(); ++i)
    for (const SeriesDifference& s : c.pairs[i].series)
      if (s.at)
        pair(i, "first difference of " + s.name + " (step " + exact_number(*s.at) + ")", exact_number(s.here),
             exact_number(s.there));
  for (std::size_t i = 0; i < c.pairs.size(); ++i) {
    for (const std::string& name : c.pairs[i].only_here) pair(i, name, "on record", "-");
    for (const std::string& name : c.pairs[i].only_there) pair(i, name, "-", "on record");
  }
  for (const Difference& d : c.incidents) line("incident", d.what, d.values);
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

/// Of a comparison of two steps: its differences, what the steps leave behind, and each operation.
std::string diff_csv(const StepDiff& diff) {
  std::ostringstream out;
  const auto number = [](const std::optional<std::int64_t>& op) { return op ? std::to_string(*op) : ""; };
  const auto distance = [](double value) { return std::isnan(value) ? "" : exact_number(value); };
  record(out, std::string("row"), std::string("what"), std::string("op_a"), std::string("op_b"),
         std::string("op"), std::string("module"), std::string("phase"), std::string("in_a"),
         std::string("in_b"), std::string("distance"), std::string("rounding"), std::string("text"));
  const std::string none;
  for (const StepDiff::Finding& f : diff.findings)
    record(out, std::string("difference"), f.kind, number(f.op_a), number(f.op_b), f.op,
           f.parameter.empty() ? f.module : f.parameter, f.phase, one_line(f.in_a), one_line(f.in_b),
           distance(f.distance.found), distance(f.distance.rounding), one_line(f.text));
  for (const StepDiff::End& end : diff.ends)
    record(out, std::string("end"), end.name, none, none, none, none, none, none, none,
           distance(end.distance.found), distance(end.distance.rounding),
           std::to_string(end.differ) + " of " + std::to_string(end.compared) + " differ");
  for (const StepDiff::Operation& op : diff.operations)
    record(out, std::string("operation"), std::string(state_words(op.state())), number(op.a), number(op.b),
           op.op, op.module, op.phase, none, none, distance(op.distance.found),
           distance(op.distance.rounding), none);
  return out.str();
}

}  // namespace

Result<std::string> runs_csv(Session& session) {
  if (session.diff() != nullptr) return diff_csv(*session.diff());
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
