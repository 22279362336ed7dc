/// Causes: why did this op make that value? One file per cause, in replay/cause/causes.
///
/// To add one, write three files and touch none:
///
///     replay/cause/causes/<label>.cpp                 the cause, named like its label (verdict/labels.h)
///     samples/causes/<label>.cpp                      a program that runs into it
///     tests/replay/diagnose/causes/<label>_test.cpp   that sample, its variants, what only looks like it
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
/// No cause knows of another. Where several claim a case, the step is asked (arbiter.h): by what each of them
/// says would help, and would not; of those that are left, the one whose proof goes deepest is right.
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

/// How deep behind the bad values a proof goes. Each step explains what the ones before it take as given.
enum class Depth : std::uint8_t {
  size,      ///< a result is larger than its format holds
  function,  ///< what the function does with these arguments
  operand,   ///< why the arguments are as they are
  use,       ///< what the step does with the results, shown by changing them
  purpose,   ///< what the op and those around it compute together
  source,    ///< no arithmetic made the number: the program chose it, the batch brought it, nobody wrote it
  meaning,   ///< and what that number is for, or what changed it
};

/// What a cause found: it explains every bad value of the culprit, or `examine` returns nothing.
struct Finding {
  Label label = Label::unknown;  ///< filled in by find_cause
  Depth depth = Depth::size;  ///< if this proof goes deeper than the cause says; else filled in by find_cause
  std::vector<Evidence> evidence = {};
  std::string explanation = {};  ///< the proximate cause, one or two sentences
  std::string advice = {};       ///< the fix in words, for somebody who reads nothing else
  /// What a person would do first if another format of the whole step were the cure: put before `advice`
  /// where the step is finite in bf16 and nothing says that values grow.
  std::string bf16_advice = {};
  std::string source = {};          ///< the rule or the documentation that the test comes from
  std::vector<Change> wanted = {};  ///< counterfactuals that would confirm it, beyond the precision runs that
                                    ///< every verdict has
  std::vector<Change> unmoved = {};  ///< changes that must *not* help if this cause is right: one that helps
                                     ///< refutes it
  /// What a wider format gives that helps, if `precision`; nothing where the cause doesn't know: then the one
  /// that helps alone is it, and the other is the placebo. Without `precision` a cause that goes no
  /// deeper than Depth::purpose says that no format helps.
  std::optional<FormatHalf> needs = {};
  bool precision = false;  ///< changing the number format is a fix for this cause
  /// Where the value came from and when, if the proof knows more than the trace shows (a number among the
  /// arguments of an op is a setting).
  std::optional<Origin> origin = {};
  std::optional<Phase> phase = {};
  /// The op that the value did its first harm at, if the proof knows better than the trace.
  std::int32_t op = kNone;
  bool not_computed = false;              ///< no arithmetic of the step made the value: no format has a say
  std::vector<std::int64_t> poison = {};  ///< samples seen to be bad without running anything
};

/// An op that a cause may speak about (its plain_name), and the argument of its schema that the cause looks
/// at, by name: positions differ from op to op and from version to version. "" if it looks at all of them.
struct Subject {
  std::string_view op, argument;
};

/// A cause as its file declares it. An empty list stands for "any".
struct Cause {
  Label label;
  std::vector<Origin> origins = {};
  std::vector<Phase> phases = {};  ///< of the culprit's op
  bool derivative_of = false;      ///< `ops` are those that the culprit, an op of backward, differentiates
  std::vector<Subject> ops = {};
  Depth depth = Depth::function;
  bool of_recorded = false;  ///< it may explain an op that can't be run here, from what was recorded of it
  /// The proof: reads what it needs and decides; nothing if this cause doesn't explain the case, or not
  /// alone. May throw what ATen throws: that counts as "does not decide".
  /// Of a culprit on lists it is asked for each call that went wrong; it must explain all of them.
  std::optional<Finding> (*examine)(const Case& c, const Subject& subject) = nullptr;
};

/// Defines the cause of this file, inside namespace nanquest: NANQUEST_CAUSE(log_zero) = {…};
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

/// One for each file of replay/cause/causes, by name. Lives as long as the program.
std::span<const NamedCause> all_causes();

/// What this cause says of the case; nothing if it doesn't explain every call of the culprit that went wrong,
/// or has no say in it.
std::optional<Finding> finding_of(Label label, Case c);

struct Decision;
/// Asks every cause and lets the step decide between them (arbiter.h). Takes a Case of its own to look at the
/// culprit's calls one by one.
Decision find_cause(Case c);

/// The finding when nothing decides: says what was seen.
Finding unknown_finding(const Case& c);

}  // namespace nanquest
