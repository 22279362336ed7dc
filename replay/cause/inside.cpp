#include "replay/cause/inside.h"

#include <algorithm>

#include "replay/case/values.h"
#include "replay/cause/arbiter.h"
#include "replay/cause/cause.h"
#include "replay/cause/diagnose.h"
#include "replay/cause/parts.h"
#include "replay/cause/record_parts.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

/// The culprit's first call that went wrong.
std::size_t first_bad_call(const Case& c) {
  const std::vector<OpValues>& calls = c.calls(c.op_index());
  const auto bad = std::find_if(calls.begin(), calls.end(),
                                [](const OpValues& call) { return !all_finite(call.bad_output()); });
  return bad == calls.end() ? 0 : static_cast<std::size_t>(bad - calls.begin());
}

}  // namespace

void add_inside(const Case& whole, Verdict& v) {
  Case c = whole;
  c.focus(first_bad_call(c));
  const auto parts = parts_of(c);
  if (!parts) return;
  const Recording recording = record_parts(*parts);
  if (!recording.failure.empty()) return;
  const auto replayer = replayer_of(recording);
  if (!replayer) return;
  const Case inner = make_case(*replayer);
  // Not if its parts are finite, and not if they only pass on what was bad before.
  if (inner.culprit().value.empty() || inner.culprit().origin != word(Origin::op) || !inner.op()) return;
  const BadValue value = from_word<BadValue>(inner.culprit().value).value_or(BadValue::none);
  const std::string made = inner.op_text(inner.op_index()) + " makes " +
                           std::to_string(inner.culprit().count) + " " + spoken(value, inner.culprit().count);
  v.evidence.push_back({"inside " + c.op()->name + ", run as its parts", made});
  const Finding finding = find_cause(inner).finding;
  const bool known = finding.label != Label::unknown;
  const std::string inside = "Inside it, run as its parts on the same values, " + made + ".";
  if (known && v.cause == Label::unknown) {
    v.cause = finding.label;
    v.explanation =
        c.op_text(c.op_index()) + " made the first harmful value. " + inside + " " + finding.explanation;
    v.advice = finding.advice;
    v.source = finding.source;
  } else {
    v.explanation += " " + inside;
  }
}

}  // namespace nanquest
