#include "probe/step/update_risk.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace nanquest {
namespace {

/// A gradient this many times as large as any before is news.
constexpr double kFar = 1024;
/// A parameter that was news so often has a habit.
constexpr std::uint8_t kHabit = 4;

}  // namespace

bool UpdateRisk::judge(const GradientGate& gate) {
  // What is changed before every update, as a schedule does, is no news either.
  bool news = this->news();
  passed();
  seen_.resize(std::max(seen_.size(), gate.size()));
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const at::Tensor& parameter = gate.parameters()[i];
    if (!parameter.defined() || !parameter.grad().defined()) continue;
    Seen& seen = seen_[i];
    const double largest = gate.stats(i).amax;
    const bool zeros = largest == 0;
    const bool differs =
        !seen.known || zeros != seen.zeros || (seen.largest > 0 && largest > kFar * seen.largest);
    if (differs && steps_ > 0 && seen.news < kHabit) {
      ++seen.news;
      news = true;
    }
    seen = {std::max(seen.largest, largest), true, zeros, seen.news};
  }
  if (++steps_ % kSteps == 0) left_ = std::min(left_ + 1, kAtOnce);
  if (!news || left_ == 0) return false;
  --left_;
  return true;
}

}  // namespace nanquest
