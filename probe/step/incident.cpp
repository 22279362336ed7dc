#include "probe/step/incident.h"

#include <ATen/ATen.h>

#include <exception>
#include <utility>

#include "probe/step/one_line.h"
#include "probe/step/ranks_of_step.h"
#include "probe/trace/culprit.h"

namespace nanquest {

IncidentOutcome write_incident(Recording& recording, Gate gate, const std::string& path, std::string before,
                               Election* election) {
  IncidentOutcome outcome{"", std::move(before)};
  recording.doc.gate = gate;
  add_process_groups(recording.doc);
  if (recording.doc.culprit.op != kNone)
    append(outcome.text, one_line(describe_culprit(recording.doc)));
  else if (outcome.text.empty() && recording.doc.basis == "every_output")
    outcome.text = "no op, input or state was found that explains it";
  if (election != nullptr && election->needed()) {
    const bool loss_bad = recording.loss.defined() && !recording.loss.isfinite().all().item<bool>();
    const Seat seat = election->hold(recording.doc.step, row_of(recording.doc, loss_bad));
    append(outcome.text, seat.line);
    if (!seat.whole) return outcome;
  }
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
                                 const std::string& path, Election* election) {
  IncidentOutcome outcome;
  try {
    Recording recording = record_step(state, compute);
    const bool reproduced = failed_again(recording.loss);
    if (!recording.failure.empty())
      outcome.text = "the traced re-run threw: " + one_line(recording.failure);
    else if (!reproduced)
      outcome.text = "not reproduced: nondeterministic (the traced re-run was finite)";
    if (!outcome.text.empty()) recording.notes.push_back(outcome.text);
    outcome = write_incident(recording, gate, path, std::move(outcome.text), election);
  } catch (const std::exception& e) {
    append(outcome.text, "capture failed: " + one_line(e.what()));
  } catch (...) {
    append(outcome.text, "capture failed");
  }
  return outcome;
}

}  // namespace nanquest
