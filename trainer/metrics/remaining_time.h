/// The remaining time of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace nanquest::trainer {

/// Uses the last hundred steps, including everything between them (evaluation, checkpoints), so that a slow
/// first step and other load on the machine are soon forgotten.
class RemainingTime {
 public:
  /// A step was done, `seconds` after a fixed moment.
  void add(double seconds);
  /// Seconds for `steps` more; nothing before two steps are done.
  std::optional<double> left(std::int64_t steps) const;

 private:
  static constexpr std::size_t kSteps = 100;
  std::deque<double> done_;
};

/// "0:07", "3:12", "1:02:05", "2d 03:00:00": minutes and seconds, hours and days only if needed.
std::string duration_text(double seconds);

}  // namespace nanquest::trainer
