/// Timed: measures where the time of an update goes.
#pragma once

#include <chrono>

namespace nanquest::record {

/// Adds the time from construction to destruction to `seconds`, unless that is null.
class Timed {
 public:
  explicit Timed(double* seconds) : seconds_(seconds) {
    if (seconds_) start_ = std::chrono::steady_clock::now();
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() {
    if (seconds_)
      *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace nanquest::record
