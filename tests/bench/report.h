/// How every benchmark reports: one line "name ratio goal ok|short spread", ratio and spread from one run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace nanquest::bench {

/// Whether this is a test that the benchmark still runs (NANQUEST_BENCH_ROUNDS=1), not how fast anything is:
/// of everything one short round.
inline bool one_round() {
  return std::getenv("NANQUEST_BENCH_ROUNDS") != nullptr;
}
inline int rounds(int usual) {
  return one_round() ? 1 : usual;
}

/// Seconds that one call of `f` takes.
inline double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Ratios time(ours) / time(reference), measured pairwise in turn (ours, reference, ours, …) so that a
/// machine whose speed drifts drifts for both. One warm-up pair is not counted.
inline std::vector<double> paired_ratios(const std::function<void()>& ours,
                                         const std::function<void()>& reference, int pairs) {
  std::vector<double> ratios;
  for (int i = -1; i < rounds(pairs); ++i) {
    const double a = seconds(ours);
    const double b = seconds(reference);
    if (i >= 0) ratios.push_back(a / b);
  }
  return ratios;
}

enum class Better { lower, higher };

/// Prints the line for the median of `ratios`; returns true if the goal is met. Does not change the exit
/// code.
inline bool report(const std::string& name, std::vector<double> ratios, double goal, Better better) {
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[ratios.size() / 2];
  const bool ok = better == Better::lower ? median <= goal : median >= goal;
  std::printf("%-40s %8.4f  goal %s %-8.4g %-5s spread %.4f..%.4f\n", name.c_str(), median,
              better == Better::lower ? "<=" : ">=", goal, ok ? "ok" : "short", ratios.front(),
              ratios.back());
  std::fflush(stdout);
  return ok;
}

}  // namespace nanquest::bench
