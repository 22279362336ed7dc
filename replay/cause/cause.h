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
///         .yields_to = {Label::domain},
///         .examine = examine,
///     };
///
/// A cause must refuse whenever another could explain the same values: UNKNOWN is honest, a wrong label not.
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

/// What a cause found: it explains every bad value of the culprit, or `examine` returns nothing.
struct Finding {
  Label label = Label::unknown;  ///< filled in by find_cause
  std::vector<Evidence> evidence = {};
  std::string explanation = {};     ///< the proximate cause, one or two sentences
  std::string advice = {};          ///< the fix in words, for somebody who reads nothing else
  std::string source = {};          ///< the rule or the documentation that the test comes from
  std::vector<Change> wanted = {};  ///< counterfactuals that would confirm it, beyond the precision runs that
                                    ///< every verdict has
  std::vector<Change> unmoved = {};  ///< changes that must *not* help if this cause is right: one that helps
                                     ///< refutes it
  /// What a wider format gives that helps, if `precision`; nothing where the cause doesn't know: then the one
  /// that helps alone is it, and the other is the placebo.
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
  /// Where one of these claims the case, this one is silent.
  std::vector<Label> yields_to = {};
  /// Where this one claims the case, these are silent: it tells more of the same values than they do.
  std::vector<Label> supersedes = {};
  /// The proof: reads what it needs and decides; nothing if this cause doesn't explain the case, or not
  /// alone. May throw what ATen throws: that counts as "does not decide".
  /// Of a culprit on lists it is asked for each call that went wrong; it must explain all of them.
  std::optional<Finding> (*examine)(const Case& c, const Subject& subject) = nullptr;
  /// For a cause whose proof is not written yet: whether the case looks like it. Others yield to it all the
  /// same, and an UNKNOWN says so.
  bool (*resembles)(const Case& c, const Subject& subject) = nullptr;
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

/// Labels without a proof that the case resembles, by name; without those that yield to one that claims it.
std::vector<Label> resembled(const Case& c);

/// The finding when nothing decides: says what was seen, and what it resembles.
Finding unknown_finding(const Case& c);

}  // namespace nanquest
