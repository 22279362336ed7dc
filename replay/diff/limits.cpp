#include "replay/diff/limits.h"

namespace nanquest::diff {

Limits::Limits(const Steps& steps, const Settings& settings, bool of_both, const std::vector<End>& ends) {
  if (settings.say) settings.say("changing last bits in A");
  a_.emplace(steps.a, settings.perturbations, places(ends, &End::a), steps.precision);
  if (of_both) {
    if (settings.say) settings.say("changing last bits in B");
    b_.emplace(steps.b, settings.perturbations, places(ends, &End::b), steps.precision);
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    Apart limit = a_->wanted(i);
    if (b_) limit.at_least(b_->wanted(i));
    of_ends_.push_back(limit);
  }
}

Apart Limits::of(const OpPair& pair, std::int32_t entry) const {
  Apart limit = a_->limit({pair.a.row(), entry});
  if (b_) limit.at_least(b_->limit({pair.b.row(), entry}));
  return limit;
}

}  // namespace nanquest::diff
