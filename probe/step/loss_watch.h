/// LossWatch: is a finite loss far above this run's usual values? Information for the history, never an
/// incident: a spike is often the first sign of growing values, and just as often a hard batch.
#pragma once

#include <array>
#include <cstddef>

namespace nanquest {

class LossWatch {
 public:
  static constexpr std::size_t kWindow = 64, kLeast = 32;

  /// Takes the loss of an applied step. True at the first step of a spike: at least kLeast losses are known,
  /// and this one is above their median m by more than 8 robust standard deviations (1.4826 times the median
  /// absolute deviation) and by more than half of |m|. A loss that stays high is reported once. Non-finite
  /// losses are ignored.
  bool spikes(double loss);

 private:
  std::array<double, kWindow> losses_{};
  std::size_t taken_ = 0;
  bool up_ = false;
};

}  // namespace nanquest
