/// How long a run will still take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace nanquest::trainer {

/// Goes by the last hundred steps, with all that happened between them (evaluation, checkpoints), so that a
/// slow first step and a machine that others use are soon forgotten.
class RemainingTime {
 public:
  /// A step was done, `seconds` after some fixed moment.
  void add(double seconds);
  /// Seconds that `steps` more will take; nothing before two steps are done.
  std::optional<double> left(std::int64_t steps) const;

 private:
  static constexpr std::size_t kSteps = 100;
  std::deque<double> done_;
};

/// "0:07", "3:12", "1:02:05", "2d 03:00:00": minutes and seconds, hours and days where there are any.
std::string duration_text(double seconds);

}  // namespace nanquest::trainer
