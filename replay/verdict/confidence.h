/// confidence: how likely the named cause is right, from what was shown for it and against it.
///
/// A logistic model of six facts (Shown). Its weights were fitted on verdicts whose truth is known: those of
/// tests/faultbench, and those on the same steps with the right cause left out (`nanquest-replay --without`),
/// as a failure of a kind that no cause knows would be judged; that of `in_step` on programs that somebody
/// else wrote, as they came out when they were first run. docs/evidence.md has the table of how well it
/// holds for families that were not fitted on; tests/faultbench/calibrate.py makes both.
#pragma once

#include <string>

#include "replay/verdict/verdict.h"

namespace nanquest {

/// Of what was not looked at: a change that was not tried, the operands of a part inside a fused op.
inline constexpr double kNotSeen = 0.75;

/// Each from 0 to 1; in between where it is not known.
struct Shown {
  double deep =
      kNotSeen;       ///< the proof says why the operands are as they are, not only what came out of them
  double agrees = 1;  ///< no experiment contradicts the cause
  double helps = kNotSeen;     ///< a change that the cause asks for makes the step finite
  double verified = kNotSeen;  ///< and its control does not, nor does anything smaller
  double same_event = 0.5;     ///< the step came back bit for bit (half: within bounds)
  double in_step = 1;  ///< what made the value is on record; 0: it came from outside (BAD_DATA, BAD_STATE)
};

/// What a verdict shows for its cause.
Shown shown_by(const Verdict& verdict);

/// The cause that is meant: the likely one where the evidence is too weak to name it.
Label meant_cause(const Verdict& verdict);

/// Below this the cause is not named: UNKNOWN, with the best claims.
inline constexpr double kLeastConfidence = 0.7;

/// 0 … 1; 0 for a verdict that names no cause.
double confidence_of(const Verdict& verdict);

/// The same for a step that is on record as a spike: the share of the made spikes with this label that were
/// named right (tests/spikebench), by Laplace's rule of succession. 0 for other labels.
double spike_confidence(Label cause);

/// "97 %: …; but …", what speaks for it and against it; for a spike "91 % (20 of 20 made spikes with this label
/// were named right)"; the number alone where it comes from another rule, as in an older file.
std::string confidence_text(const Verdict& verdict);

/// Sets the confidence. Where it is too low, the verdict becomes UNKNOWN and says which two causes are the
/// most likely and which experiment tells them apart.
void settle_confidence(Verdict& verdict);

}  // namespace nanquest
