/// The progress display of a training, on stderr.
#pragma once

#include <chrono>
#include <string>

#include "trainer/loop/config.h"

namespace nanquest::trainer {

/// On a terminal one line that is rewritten; elsewhere a plain line from time to time. Colour only on a
/// terminal and without NO_COLOR.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Steps between plain lines, at least 1.
  void every(std::int64_t steps) { every_ = steps > 1 ? steps : 1; }
  /// The unit of the speed: "tok" (the default).
  void counts(const char* unit) { unit_ = unit; }
  void on_step(const StepEvent& event);
  void on_message(const std::string& text);
  /// Ends the drawn line.
  void close();

 private:
  std::string line(const StepEvent& event) const;

  std::int64_t every_ = 1;
  const char* unit_ = "tok";
  bool terminal_, colour_, drawn_ = false;
  std::chrono::steady_clock::time_point last_draw_{};
};

}  // namespace nanquest::trainer
