#include "probe/step/incident.h"

#include <exception>
#include <utility>

#include "probe/step/one_line.h"
#include "probe/trace/culprit.h"

namespace nanquest {

IncidentOutcome write_incident(Recording& recording, Gate gate, const std::string& path, std::string before) {
  IncidentOutcome outcome{"", std::move(before)};
  recording.doc.gate = gate;
  if (recording.doc.culprit.op != kNone)
    append(outcome.text, one_line(describe_culprit(recording.doc)));
  else if (outcome.text.empty() && recording.doc.basis == "every_output")
    outcome.text = "no op, input or state was found that explains it";
  const Status written = write_snapshot(recording, path);
  if (written)
    outcome.path = path;
  else
    append(outcome.text, "snapshot not written: " + one_line(written.error().text()));
  return outcome;
}

IncidentOutcome capture_incident(const StepState& state, Gate gate,
                                 const std::function<at::Tensor()>& compute,
                                 const std::function<bool(const at::Tensor& loss)>& failed_again,
                                 const std::string& path) {
  IncidentOutcome outcome;
  try {
    Recording recording = record_step(state, compute);
    const bool reproduced = failed_again(recording.loss);
    if (!recording.failure.empty())
      outcome.text = "the traced re-run threw: " + one_line(recording.failure);
    else if (!reproduced)
      outcome.text = "not reproduced: nondeterministic (the traced re-run was finite)";
    if (!outcome.text.empty()) recording.notes.push_back(outcome.text);
    outcome = write_incident(recording, gate, path, std::move(outcome.text));
  } catch (const std::exception& e) {
    append(outcome.text, "capture failed: " + one_line(e.what()));
  } catch (...) {
    append(outcome.text, "capture failed");
  }
  return outcome;
}

}  // namespace nanquest
