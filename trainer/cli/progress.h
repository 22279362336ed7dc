/// What a person sees while it trains, on stderr.
#pragma once

#include <chrono>
#include <string>

#include "trainer/loop/config.h"

namespace nanquest::trainer {

/// On a terminal one line that is drawn again and again; elsewhere a plain line every so often. Colour only
/// on a terminal and without NO_COLOR.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Steps between plain lines, at least 1.
  void every(std::int64_t steps) { every_ = steps > 1 ? steps : 1; }
  /// What a step's speed counts, a word of ours: "tok" (the default).
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
