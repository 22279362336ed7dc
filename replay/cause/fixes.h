/// fixes: tries changes on the step, each against its placebo, smallest first.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/cause/cause.h"

namespace nanquest {

/// Everything that was tried, and the cheapest verified fix among it.
struct FixSearch {
  std::vector<Counterfactual> tried;
  std::optional<Fix> fix;
  std::optional<SourceEdit> edit;  ///< `fix` in the program
  std::vector<std::string> notes;  ///< what could not be tested and why
  bool finite_in_bf16 = false;     ///< the whole step in bf16 was tried and is finite
};

using Progress = std::function<void(const std::string&)>;

/// Runs what `finding` asks for and, if precision can matter, op → op and readers → module → its parents →
/// whole step. A larger change is tried only if no smaller one of its kind helped. `progress` is called
/// before each run.
FixSearch search_fixes(const Case& c, const Finding& finding, const Progress& progress);

}  // namespace nanquest
