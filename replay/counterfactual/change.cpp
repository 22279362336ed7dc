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

TrialResult run_change(const Case& c, const RunOptions& options) {
  const RunResult run = c.run(options);
  if (run.failed > c.whole(Precision::as_recorded).failed) return TrialResult::failed;
  return c.healthy(run) ? TrialResult::finite : TrialResult::non_finite;
}

}  // namespace nanquest
