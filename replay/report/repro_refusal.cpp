#include "replay/report/repro_refusal.h"

#include <initializer_list>

#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/words.h"

namespace nanquest {
namespace {

constexpr const char* kNotTheOp = "repro: no op made the bad values, so none can show it alone: ";

/// How to get the culprit's op, or the first reader of bad values, all the same.
std::string instead(const Case& c, const std::string& why) {
  if (!c.op()) return "";
  return " --op " + std::to_string(c.op_index()) + " writes a repro of " + c.op_text(c.op_index()) +
         " all the same, " + why;
}

std::optional<Finding> first_finding(const Case& c, std::initializer_list<Label> labels) {
  for (const Label label : labels)
    if (auto finding = finding_of(label, c)) return finding;
  return std::nullopt;
}

}  // namespace

Status op_is_to_blame(const Case& c) {
  const Culprit& culprit = c.culprit();
  if (culprit.value.empty())
    return Error{ErrorCode::usage,
                 "repro: nothing harmful was found in this step, so there is no culprit to run alone",
                 "--op N writes any op of the trace"};
  const auto origin = from_word<Origin>(culprit.origin).value_or(Origin::op);
  const bool by_op = origin == Origin::op && c.op();
  const auto finding =
      by_op ? first_finding(c, {Label::uninitialized})
            : first_finding(c, {Label::race, Label::loss_scale, Label::bad_state, Label::bad_data});
  const std::string reader = instead(c, "which only reads them");
  if (finding)
    return Error{ErrorCode::unsupported, kNotTheOp + finding->explanation, finding->advice + reader};
  if (by_op) return {};
  const auto value = from_word<BadValue>(culprit.value).value_or(BadValue::mixed);
  return Error{ErrorCode::unsupported,
               kNotTheOp + std::string(spoken(origin)) + " " + culprit.tensor_name + " held " +
                   std::to_string(culprit.count) + " " + spoken(value, culprit.count) +
                   " when the step began",
               "Look for who made them, before this step." + reader};
}

Status op_shows_it(const Case& c, const RecordedCall& call) {
  if (call.bad_here() || !call.bad()) return {};
  return Error{ErrorCode::unsupported,
               "repro: " + c.op_text(c.op_index()) + ", op " + std::to_string(c.op_index()) +
                   ", was recorded with " + bad_text(call) +
                   ", but on the same inputs it gives finite values here: the machine, its memory or another "
                   "build is at fault, not the op",
               "nanquest-replay verify compares the whole step;" +
                   instead(c, "to be run on the machine that is suspected")};
}

std::string bad_text(const RecordedCall& call) {
  std::int64_t nan = 0, inf = 0;
  for (const RecordedOutput& o : call.outputs) nan += o.nan, inf += o.inf;
  std::string text = nan ? std::to_string(nan) + " NaN" : "";
  if (inf) text += (nan ? " and " : "") + std::to_string(inf) + " Inf";
  return text.empty() ? "no NaN or Inf" : text;
}

}  // namespace nanquest
