#include "replay/cause/cause.h"
#include "replay/cause/opaque.h"

namespace nanquest {

const std::vector<const Cause*>& causes() {
  static const std::vector<const Cause*> all = {
      &bad_data(), &bad_state(),     &all_masked_row(), &log_zero(),
      &div_zero(), &singular_grad(), &fp16_overflow(),
  };
  return all;
}

Finding find_cause(const Case& c) {
  if (auto opaque = opaque_finding(c)) return *opaque;
  std::vector<Finding> found;
  for (const Cause* cause : causes()) {
    try {
      if (auto finding = cause->examine(c)) found.push_back(std::move(*finding));
    } catch (const std::exception&) {
      // A shape or a type that the cause did not expect: it can't decide.
    }
  }
  if (found.size() == 1) return found.front();
  Finding unknown = unknown_finding(c);
  for (std::size_t i = 0; i < found.size(); ++i)
    unknown.explanation +=
        (i ? " and " : " Two causes claim it: ") + found[i].label + (i + 1 == found.size() ? "." : "");
  return unknown;
}

std::string plain_name(const OpRow& op) {
  std::string name = op.name;
  if (name.rfind("aten::", 0) == 0) name = name.substr(6);
  if (name.rfind("_foreach_", 0) == 0) name = name.substr(9);
  if (name.size() > 1 && name.back() == '_') name.pop_back();
  return name;
}

}  // namespace nanquest
