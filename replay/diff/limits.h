/// limits: how far apart rounding alone could bring the values of two steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/diff/differ.h"
#include "replay/diff/ends.h"
#include "replay/diff/reason.h"

namespace nanquest::diff {

class Limits {
 public:
  /// Runs A with changed last bits, and B too where their formats differ (`of_both`); says so by `settings`.
  Limits(const Steps& steps, const Settings& settings, bool of_both, const std::vector<End>& ends);

  /// Of entry `entry` of what the pair writes: the larger of both.
  Apart of(const OpPair& pair, std::int32_t entry) const;
  /// Of what the steps leave behind, in the order of the ends.
  const std::vector<Apart>& of_ends() const { return of_ends_; }

 private:
  std::optional<Rounding> a_, b_;
  std::vector<Apart> of_ends_;
};

}  // namespace nanquest::diff
