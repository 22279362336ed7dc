#include <algorithm>

#include "replay/case/values.h"
#include "replay/cause/arbiter.h"
#include "replay/cause/cause.h"
#include "replay/cause/opaque.h"

namespace nanquest {
namespace {

template <class T>
bool allows(const std::vector<T>& allowed, const std::optional<T>& value) {
  return allowed.empty() || (value && std::find(allowed.begin(), allowed.end(), *value) != allowed.end());
}

/// The entry of the cause's ops that this case is about; null if the cause does not apply.
const Subject* subject_of(const Cause& cause, const Case& c) {
  static const Subject any;
  const OpRow* op = c.op();
  if (!allows(cause.origins, from_word<Origin>(c.culprit().origin))) return nullptr;
  if (!allows(cause.phases, op ? std::optional(op->phase) : std::nullopt)) return nullptr;
  if (cause.derivative_of) op = c.row(c.forward_of(c.op_index()));
  if (cause.ops.empty()) return &any;
  const std::string name = op ? plain_name(*op) : "";
  const auto found =
      std::find_if(cause.ops.begin(), cause.ops.end(), [&](const Subject& s) { return s.op == name; });
  return found == cause.ops.end() ? nullptr : &*found;
}

/// Of an op on lists at most this many calls are looked at: the first ones that went wrong.
constexpr std::size_t kMaxCalls = 16;

/// The calls of the culprit that went wrong; its only call if nothing can be seen there.
std::vector<std::size_t> bad_calls(const Case& c) {
  std::vector<std::size_t> found;
  const std::vector<OpValues>& calls = c.calls(c.op_index());
  for (std::size_t k = 0; k < calls.size() && found.size() < kMaxCalls; ++k)
    if (!all_finite(calls[k].bad_output())) found.push_back(k);
  return found.empty() ? std::vector<std::size_t>{0} : found;
}

/// The cause's finding for the culprit; nothing if it doesn't explain every call that went wrong.
std::optional<Finding> examine(const Cause& cause, Case& c, const Subject& subject) {
  std::optional<Finding> first;
  for (const std::size_t call : bad_calls(c)) {
    c.focus(call);
    auto finding = cause.examine(c, subject);
    if (!finding) return std::nullopt;
    if (!first) first = std::move(finding);
  }
  first->label = cause.label;
  first->depth = std::max(first->depth, cause.depth);
  return first;
}

/// The same, for a cause that may not apply.
std::optional<Finding> heard(const Cause& cause, Case& c) {
  const Subject* subject = subject_of(cause, c);
  if (!subject) return std::nullopt;
  try {
    return examine(cause, c, *subject);
  } catch (const std::exception&) {  // an unexpected shape or type: undecided
    return std::nullopt;
  }
}

}  // namespace

std::optional<Finding> finding_of(Label label, Case c) {
  for (const auto& [file, cause] : all_causes())
    if (cause->label == label) return heard(*cause, c);
  return std::nullopt;
}

Decision find_cause(Case c, const std::vector<Label>& left_out) {
  const auto asked = [&](const Cause& cause) {
    return std::find(left_out.begin(), left_out.end(), cause.label) == left_out.end();
  };
  const auto opaque = opaque_finding(c);
  std::vector<Finding> found;
  for (const auto& [file, cause] : all_causes())
    if (asked(*cause) && (!opaque || cause->of_recorded))
      if (auto finding = heard(*cause, c)) found.push_back(std::move(*finding));
  if (opaque && found.empty()) return {*opaque, {}};
  return decide(c, std::move(found));
}

}  // namespace nanquest
