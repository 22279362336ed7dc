/// Causes: why did this op make that value? One file per cause, in replay/cause/causes.
///
/// To add one, write three files and change none:
///
///     replay/cause/causes/<label>.cpp                 the cause, named like its label (verdict/labels.h)
///     samples/causes/<label>.cpp                      a program that shows it
///     tests/replay/diagnose/causes/<label>_test.cpp   that sample, its variants, and cases that only look
///     like it
///
/// The build finds them by their names and lists the files of causes/ (list.cpp.in). The cause itself is
///
///     std::optional<Finding> examine(const Case& c, const Subject& log) {
///       const at::Tensor x = tensor_of(argument(c, c.op_index(), log.argument));
///       … nothing unless it explains every bad element …
///       return Finding{.evidence = …, .explanation = …, .advice = …};
///     }
///     NANQUEST_CAUSE(log_zero) = {
///         .label = Label::log_zero,
///         .origins = {Origin::op},
///         .phases = {Phase::forward, Phase::backward},
///         .ops = {{"log", "self"}, {"log1p", "self"}},
///         .depth = Depth::function,
///         .examine = examine,
///     };
///
/// Causes do not refer to each other. If several claim a case, their predictions of what helps are tested on
/// the step (arbiter.h); of those that remain, the one with the deepest proof is right.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/case/case.h"
#include "replay/counterfactual/change.h"
#include "replay/lab/format_half.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// Advice of causes of range. Where the op alone in fp32 was tried and did not help, what helped takes its
/// place.
inline constexpr const char* kKeepOpInFp32 = "Keep this op in fp32 (autocast disabled around it)";

/// What a cause found: it explains every bad value of the culprit; otherwise `examine` returns nothing.
struct Finding {
  Label label = Label::unknown;  ///< filled in by find_cause
  Depth depth = Depth::size;  ///< if this proof goes deeper than the cause declares; otherwise filled in by
                              ///< find_cause
  std::vector<Evidence> evidence = {};
  std::string explanation = {};  ///< the proximate cause, one or two sentences
  std::string advice = {};       ///< the fix in words, understandable without the rest
  /// What to do first if another format for the whole step is the cure: put before `advice` if the step is
  /// finite in bf16 and nothing shows that values grow.
  std::string bf16_advice = {};
  std::string source = {};          ///< the rule or the documentation that the test comes from
  std::vector<Change> wanted = {};  ///< counterfactuals that would confirm it, beyond the precision runs that
                                    ///< every verdict has
  std::vector<Change> unmoved = {};  ///< changes that must *not* help if this cause is right; if one helps,
                                     ///< the cause is refuted
  /// With `precision`: which half of a wider format helps; nothing if the cause doesn't know: then the half
  /// that helps alone is taken, and the other is the placebo. Without `precision`, a cause no deeper than
  /// Depth::purpose says that no format helps.
  std::optional<FormatHalf> needs = {};
  bool precision = false;  ///< changing the number format is a fix for this cause
  /// Where the value came from and when, if the proof knows more than the trace shows (a number among an op's
  /// arguments is a setting).
  std::optional<Origin> origin = {};
  std::optional<Phase> phase = {};
  /// The op where the value first did harm, if the proof knows better than the trace.
  std::int32_t op = kNone;
  bool not_computed = false;  ///< no arithmetic of the step made the value: number formats are
                              ///< irrelevant
  std::string doubt = {};     ///< what the proof can't show of where the operands come from: held against the
                              ///< claim, which then counts as one that goes no deeper than the op
  std::optional<Label> rival = {};        ///< with `doubt`: the cause that it would be then
  std::vector<std::int64_t> poison = {};  ///< samples found to be bad without running anything
};

/// An op that a cause can explain (its plain_name), and the argument that the cause looks at, by its name in
/// the schema: positions differ between ops and versions. "" if it looks at all of them.
struct Subject {
  std::string_view op, argument;
};

/// A cause as its file declares it. An empty list means "any".
struct Cause {
  Label label;
  std::vector<Origin> origins = {};
  std::vector<Phase> phases = {};  ///< of the culprit's op
  bool derivative_of = false;      ///< `ops` are those that the culprit, an op of backward, differentiates
  std::vector<Subject> ops = {};
  Depth depth = Depth::function;
  bool of_recorded = false;  ///< it may explain an op that can't be run here, from its recorded values
  /// The proof: reads what it needs and decides; nothing if this cause doesn't explain the case, or not
  /// alone. May throw what ATen throws: that counts as undecided. For a culprit on lists it is called for
  /// each call that went wrong, and must explain all of them.
  std::optional<Finding> (*examine)(const Case& c, const Subject& subject) = nullptr;
};

/// Defines the cause in this file, inside namespace nanquest: NANQUEST_CAUSE(log_zero) = {…};
#define NANQUEST_CAUSE(name) \
  namespace causes {         \
  extern const Cause name;   \
  }                          \
  const Cause causes::name

/// A cause with the name of its file.
struct NamedCause {
  std::string_view file;  ///< "log_zero"
  const Cause* cause;
};

/// One for each file of replay/cause/causes, by name. Valid as long as the program runs.
std::span<const NamedCause> all_causes();

/// The finding of this cause; nothing if it doesn't explain every call of the culprit that went wrong, or
/// does not apply.
std::optional<Finding> finding_of(Label label, Case c);

struct Decision;
/// Asks every cause and decides between them by experiments (arbiter.h). Takes a Case of its own, to look at
/// the culprit's calls one by one. Causes in `left_out` are not asked.
Decision find_cause(Case c, const std::vector<Label>& left_out = {});

/// The finding if nothing decides: says what was measured.
Finding unknown_finding(const Case& c);

}  // namespace nanquest
