#include "replay/counterfactual/change.h"

#include "replay/cause/case.h"

namespace nanquest {

std::string precision_text(Precision precision) {
  switch (precision) {
    case Precision::as_recorded:
      return "as recorded";
    case Precision::bf16:
      return "bf16";
    case Precision::fp32:
      return "fp32";
    case Precision::fp64:
      break;
  }
  return "fp64";
}

TrialResult run_change(const Case& c, const Change& change) {
  const auto known = c.trials().find(change.text);
  if (known != c.trials().end()) return known->second;
  const TrialResult result = run_change(c, change.options);
  c.trials().emplace(change.text, result);
  return result;
}

TrialResult run_change(const Case& c, const RunOptions& options) {
  RunOptions decided_early = options;
  decided_early.stop_when_harmed = true;
  const RunResult run = c.run(decided_early);
  if (run.failed > c.whole(Precision::as_recorded).failed) return TrialResult::failed;
  return c.healthy(run) ? TrialResult::finite : TrialResult::non_finite;
}

}  // namespace nanquest
