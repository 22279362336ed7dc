/// differ: compares two recorded steps, and finds where and why they part beyond rounding.
///
///     const Result<Report> report = compare_steps(a, b, {});
///     std::string text = to_text(*report, false);
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "probe/base/result.h"
#include "replay/diff/report.h"
#include "replay/trace/replayer.h"

namespace nanquest::diff {

struct Settings {
  int perturbations = 8;  ///< runs with last bits changed
  int most_findings = 8;
  int most_repairs = 40;     ///< places at which B's values are put into A, for all findings together
  double least_share = 0.3;  ///< of ops in common; with less these are two different programs
  std::function<void(const std::string& what)> say = {};  ///< progress; may be empty
  /// The operators of a compiled region as a step of their own, nothing if they can't be had; empty: no
  /// region is looked into.
  std::function<std::optional<Replayer>(const Replayer& step, OpId region)> open_region = {};
};

/// Runs both steps on the CPU, again for each perturbation, and again for each finding and what is tried for
/// it. File names in the report are left to the caller. `bad_file`: a step can't be run.
Result<Report> compare_steps(const Replayer& a, const Replayer& b, const Settings& settings);

}  // namespace nanquest::diff
