/// confidence: how often verdicts with the same amount of evidence were right, where the truth was known.
///
/// Counted on faults that were planted in models of the test matrix (tests/attach/planted/try_faults.py
/// --evidence, 2026-11-22, 109 incidents with a cause), before anything that was judged wrong there was
/// corrected, and none of them taken from the benchmark that figures are reported on. A verdict is right
/// there if step, op, module, phase, origin and cause all are.
///
/// The number is Laplace's rule of succession, (right + 1) / (all + 2): few cases never make certainty.
#pragma once

#include <string>

#include "replay/verdict/verdict.h"

namespace nanquest {

/// Verdicts of one kind whose truth was known.
struct Counted {
  int right = 0, all = 0;
};

/// The evidence for a cause, from more to less: a fix that was verified on this very step; the cause's own
/// test, on a step that came back bit for bit. Nothing was counted for steps that came back otherwise, nor
/// for COMPILER.
constexpr Counted kWithVerifiedFix{82, 86}, kExplained{21, 23}, kNeverCounted{0, 0};
/// For the inside of compiled regions: tests/attach/planted/try_compiled.py --models bert,convnext,t5,
/// 2026-11-26, the first time that regions of these models were examined. The kinds of faults had been
/// examined in other models.
constexpr Counted kInsideRegion{36, 36};

/// Those of the verdict's kind; nothing for one that names no cause.
Counted counted_like(const Verdict& verdict);

/// 0 … 1; 0 for a verdict that names no cause.
double confidence_of(const Verdict& verdict);

/// "94 % (82 of 86 similar verdicts were right)"; only the number if it comes from another rule, as in an
/// older file.
std::string confidence_text(const Verdict& verdict);

}  // namespace nanquest
