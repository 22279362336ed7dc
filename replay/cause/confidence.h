/// confidence: how the number in the verdict comes about.
///
/// A sum of what really ran and agreed; a check that could not run gives nothing:
///
///     0.50  the cause's own test read the recorded values and explains every bad element
///           (no cause: the total is 0)
///     0.20  the step came back bit for bit: what was examined is what happened
///     0.20  a change that this cause predicts to help removed the bad value on this step
///     0.09  an irrelevant change of the same size did not
#pragma once

namespace nanquest {

struct Confirmations {
  bool explained = false;  ///< a cause, not UNKNOWN
  bool bit_exact = false;
  bool change_helped = false;
  bool placebo_failed = false;
};

/// The rule above; at most 0.99.
constexpr double confidence(const Confirmations& c) {
  if (!c.explained) return 0;
  return 0.50 + (c.bit_exact ? 0.20 : 0) + (c.change_helped ? 0.20 : 0) +
         (c.change_helped && c.placebo_failed ? 0.09 : 0);
}

}  // namespace nanquest
