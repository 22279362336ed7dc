#include "probe/step/step_counter.h"

#include <algorithm>

namespace nanquest {

namespace {

/// Parts that trained alone for longer are not half of a pair that trains in turn.
constexpr std::int64_t kAlone = 8;

}  // namespace

bool StepCounter::written_in(const std::vector<std::int64_t>& weights, std::int64_t step) const {
  return std::any_of(weights.begin(), weights.end(), [&](std::int64_t w) {
    const auto found = written_.find(w);
    return found != written_.end() && found->second == step;
  });
}

std::int64_t StepCounter::begin() {
  if (!open_) return step_;
  const auto next = next_.find(last_);
  if (next != next_.end() && !written_in({next->second}, step_)) return step_;
  open_ = false;
  guessed_ = true;
  return ++step_;
}

std::int64_t StepCounter::update(const std::vector<std::int64_t>& weights) {
  const bool by_hand = weights.size() == 1 && weights.front() == kByHand;
  const bool first =
      std::none_of(weights.begin(), weights.end(), [&](std::int64_t w) { return written_.count(w) > 0; });
  const bool joins = guessed_ && !by_hand && !written_in(weights, step_ - 1);
  if (joins && first && step_ - newest_ > kAlone)
    late_ = step_;
  else if (joins && late_ != step_ - 1)
    --step_;
  else if (open_ && written_in(weights, step_))
    ++step_;
  if (first) newest_ = step_;
  for (const std::int64_t w : weights) written_[w] = step_;
  if (!weights.empty()) {
    if (open_ || guessed_) next_[last_] = weights.front();
    last_ = weights.front();
  }
  open_ = true;
  guessed_ = false;
  return step_;
}

void StepCounter::give_up() {
  open_ = true;
  (void)begin();
  if (open_) {  // it looked like another part's turn
    open_ = false;
    ++step_;
  }
  guessed_ = false;
}

}  // namespace nanquest
