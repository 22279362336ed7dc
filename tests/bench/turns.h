/// A training that stands ready for a benchmark in Python (attach_bench.Worker): a line "N" on stdin makes N
/// steps, the answer is their seconds and how many of them the processor worked; "peak" asks for the most
/// memory that this process has had at a time, in bytes, without what it had when `Turns` was made.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>

#include "probe/base/result.h"

namespace nanquest::bench {

/// The value, or the end of the program in one line.
template <class T>
T need(Result<T> result) {
  if (result) return std::move(result).value();
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, result.error().text().c_str());
  std::exit(exit_code(result.error().code));
}

/// Bytes of the line of /proc/self/status that is called so: "VmHWM", "RssAnon", …
inline std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  return 0;
}

/// Answers what was asked for and waits for the next line; the program ends with its input.
class Turns {
 public:
  void after_step() {
    if (--left_ > 0) return;
    if (asked_) {
      const std::chrono::duration<double> passed = Clock::now() - began_;
      std::printf("%.9f %.9f\n", passed.count(),
                  static_cast<double>(std::clock() - worked_) / CLOCKS_PER_SEC);
    } else {
      std::puts("ready");
    }
    std::string line;
    for (;;) {
      std::fflush(stdout);
      if (!std::getline(std::cin, line)) std::_Exit(0);  // a checkpoint of it would be of no use
      if (line != "peak") break;
      std::printf("%lld\n", static_cast<long long>(status_bytes("VmHWM") - before_));
    }
    asked_ = true;
    left_ = std::stoll(line);
    began_ = Clock::now();
    worked_ = std::clock();
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// The first step makes gradients and moments, the next find memory for them.
  static constexpr std::int64_t kWarmUp = 4;

  std::int64_t left_ = kWarmUp, before_ = status_bytes("VmRSS");
  bool asked_ = false;
  Clock::time_point began_;
  std::clock_t worked_ = 0;
};

}  // namespace nanquest::bench
