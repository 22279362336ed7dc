/// samples and modules: which of them are needed for the failure? Delta debugging over replays of the step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

struct SampleBisection {
  bool known = false;  ///< the batch has samples that can be exchanged one by one
  std::int64_t batch = 0;
  std::int64_t donor = -1;           ///< the healthy sample that replaced the others; -1 if there is none
  std::vector<std::int64_t> poison;  ///< smallest set found: with these replaced the step is finite
  int runs = 0;
  std::string note;  ///< why there is no answer, "" if there is one
  /// The result and its placebo: `poison` replaced, and as many other samples replaced. If the placebo helps
  /// too, or there are no others to take, `poison` is empty and `note` says why.
  std::vector<Counterfactual> tried;
};

/// Replaces samples by a copy of a healthy one (shapes stay as they are) and narrows down. At most `max_runs`
/// replays.
SampleBisection bisect_samples(const Case& c, int max_runs);

struct ModuleBisection {
  bool finite_with_all = false;  ///< all modules in fp32 (fp64 for an fp32 step) make the step finite
  std::vector<std::string>
      modules;            ///< smallest set found; paths, each with its own ops only ("" is the root)
  std::string precision;  ///< "fp32" or "fp64"
  int runs = 0;
};

/// Smallest set of modules whose ops, forward and backward, must run wider for the step to be finite.
ModuleBisection bisect_modules(const Case& c, int max_runs);

}  // namespace nanquest
