#include "probe/record/leads.h"

#include <algorithm>
#include <utility>

namespace nanquest::record {

Step* Leads::begin(std::int64_t number) {
  if (rest_ > 0 && --rest_ > 0) return nullptr;
  last_ = 1 - last_;
  Step& lead = stretches_[last_];
  lead.clear();
  lead.usable = true;
  lead.number = number;
  lead.updated_at = 0;
  running_ = true;
  return &lead;
}

bool Leads::too_long() const {
  return stretches_[last_].ops.size() >= kMostLeadOps || stretches_[last_].held > kMostLeadBytes;
}

bool Leads::step_begins() {
  const bool ran = std::exchange(running_, false);
  if (ran) led_ = &stretches_[last_];
  return ran;
}

bool Leads::drop(const std::vector<Step*>& kept) {
  stretches_[last_].let_go();
  Step* const led = std::exchange(led_, nullptr);
  if (led && led != &stretches_[last_] && std::find(kept.begin(), kept.end(), led) == kept.end()) {
    led->let_go();
    led->values.release();
  }
  return std::exchange(running_, false);
}

std::size_t Leads::memory() const {
  return stretches_[0].memory() + stretches_[1].memory();
}

}  // namespace nanquest::record
