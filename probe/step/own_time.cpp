#include "probe/step/own_time.h"

namespace nanquest {

constinit thread_local OwnTime::Inside* OwnTime::open_ = nullptr;

void OwnTime::begins(std::int64_t step) {
  const bool measured = step >= kFirst && step % kEvery == kFirst;
  measuring_.store(measured, std::memory_order_relaxed);
  if (!measured) return;
  began_ = Clock::now();
  inside_ = 0;
  if (open_ != nullptr) open_->since_ = began_;
}

void OwnTime::ends() {
  if (!measuring()) return;
  const Clock::time_point now = Clock::now();
  Clock::duration inside{inside_.load()};
  if (open_ != nullptr) inside += now - open_->since_;
  if (now > began_)
    share_ = std::chrono::duration<double>(inside) / std::chrono::duration<double>(now - began_);
}

OwnTime::Inside::Inside(OwnTime& time) : time_(time), outermost_(open_ == nullptr) {
  if (!outermost_) return;
  open_ = this;
  if (time.measuring()) since_ = Clock::now();
}

OwnTime::Inside::~Inside() {
  if (!outermost_) return;
  open_ = nullptr;
  if (time_.measuring() && since_ != Clock::time_point())
    time_.inside_.fetch_add((Clock::now() - since_).count(), std::memory_order_relaxed);
}

}  // namespace nanquest
