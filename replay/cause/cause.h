/// Causes: why did this op make that value? One file per cause.
///
/// To add one: write `replay/cause/<label>.cpp` with a class that answers `examine`, add its line to
/// registry.cpp and CMakeLists.txt, and one program to samples/causes with its test. A cause must
/// refuse whenever a neighbour could explain the same values: UNKNOWN is honest, a wrong label is not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/cause/case.h"
#include "replay/counterfactual/change.h"
#include "replay/report/verdict.h"

namespace nanquest {

/// What a cause found: it explains every bad value of the culprit, or `examine` returns nothing.
struct Finding {
  std::string label;
  std::vector<Evidence> evidence;
  std::string explanation;  ///< the proximate cause, one or two sentences
  std::string advice;       ///< the fix in words, for somebody who reads nothing else
  std::string source;       ///< the rule or the documentation that the test comes from
  std::vector<Change>
      wanted;  ///< counterfactuals that would confirm it, beyond the precision runs that every verdict has
  bool precision = false;            ///< changing the number format is a fix for this cause
  std::vector<std::int64_t> poison;  ///< samples seen to be bad without running anything
};

class Cause {
 public:
  virtual ~Cause() = default;
  /// Its word in the verdict.
  virtual std::string_view label() const = 0;
  /// Reads what it needs and decides; nothing if this cause doesn't explain the case, or not alone. May throw
  /// what ATen throws: `find_cause` takes that as "does not decide".
  virtual std::optional<Finding> examine(const Case& c) const = 0;
};

/// Every cause but UNKNOWN, the most specific first. Lives as long as the program.
const std::vector<const Cause*>& causes();

/// Asks every cause; two that both claim the case cancel each other to UNKNOWN.
Finding find_cause(const Case& c);

/// The finding when nothing decides: says what was seen, and which neighbour it resembles.
Finding unknown_finding(const Case& c);

// One function per file; registry.cpp lists them.
const Cause& fp16_overflow();
const Cause& all_masked_row();
const Cause& log_zero();
const Cause& div_zero();
const Cause& singular_grad();
const Cause& bad_data();
const Cause& bad_state();

/// The op's name without "aten::", a trailing "_" (in place) and a leading "_foreach_".
std::string plain_name(const OpRow& op);

/// Resemblance to a label that has no test here, or that only a longer look could decide; "" if none. A cause
/// refuses when its own symptom has such a neighbour.
std::string neighbour_label(const Case& c);

}  // namespace nanquest
