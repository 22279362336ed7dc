#include "replay/verdict/confidence.h"

#include <cmath>

namespace nanquest {

Counted counted_like(const Verdict& v) {
  if (v.cause == Label::unknown || v.cause == Label::compiler || !v.reproduction.bit_exact)
    return kNeverCounted;
  if (!v.culprit.inside.empty()) return kInsideRegion;
  return v.fix && v.fix->verified ? kWithVerifiedFix : kExplained;
}

double confidence_of(const Verdict& v) {
  if (v.cause == Label::unknown) return 0;
  const Counted counted = counted_like(v);
  return (counted.right + 1.0) / (counted.all + 2.0);
}

std::string confidence_text(const Verdict& v) {
  std::string text = std::to_string(std::lround(v.confidence * 100)) + " %";
  // A file holds hundredths.
  if (v.cause == Label::unknown || std::abs(v.confidence - confidence_of(v)) > 0.0051) return text;
  const Counted counted = counted_like(v);
  if (counted.all == 0)
    return text + " (" +
           (v.reproduction.bit_exact ? "of the compiler" : "the step did not come back bit for bit") +
           ": how often such verdicts are right was never counted)";
  return text + " (" + std::to_string(counted.right) + " of " + std::to_string(counted.all) +
         (v.culprit.inside.empty() ? " similar verdicts" : " verdicts on compiled regions") + " were right)";
}

}  // namespace nanquest
