#include <nlohmann/json.hpp>

#include "replay/audit/audit.h"
#include "replay/verdict/numbers.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

const char* word(AuditAnswer answer) {
  switch (answer) {
    case AuditAnswer::same:
      return "same";
    case AuditAnswer::hardware:
      return "HARDWARE";
    case AuditAnswer::unknown:
      break;
  }
  return "UNKNOWN";
}

std::string where(const Audit& a) {
  return op_words(a.op_name, a.module, a.op.row());
}

/// "[3, 17]" of the flattened index.
std::string indices(std::int64_t element, const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> numbers;  // of the last dimension first
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    numbers.push_back(std::to_string(element % *size));
    element /= *size;
  }
  std::string text;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    if (!text.empty()) text += ", ";
    text += *number;
  }
  return "[" + text + "]";
}

}  // namespace

std::string audit_text(const Audit& a) {
  const std::string rank = a.world_size > 1 ? " of rank " + std::to_string(a.rank) : "";
  const std::string head = "step " + std::to_string(a.step) + rank + ": ";
  if (a.answer == AuditAnswer::same)
    return head + "run again, all " + std::to_string(a.compared) + " outputs have the same bits";
  const std::string differ =
      std::to_string(a.differ) + " of " + std::to_string(a.compared) + " outputs differ";
  if (a.answer == AuditAnswer::unknown)
    return head + "UNKNOWN: run again, " + differ + (a.op ? ", first " + where(a) : "") + ": " + a.why;
  std::string text =
      head + "HARDWARE: " + where(a) +
      " gave other bits from the same inputs than three runs here; all outputs before it are the "
      "same, " +
      differ;
  if (a.bit)
    text += "; one bit explains it: element " + indices(a.bit->element, a.sizes) + ", bit " +
            std::to_string(a.bit->bit) + ": recorded " + number_text(a.bit->recorded) + ", here " +
            number_text(a.bit->here);
  else
    text += "; no single bit explains it, or the output is too large to try all";
  return text;
}

std::string audit_json(const Audit& a, const std::string& file) {
  nlohmann::ordered_json j = {{"format", "nanquest.audit"},
                              {"version", 1},
                              {"file", file},
                              {"step", a.step},
                              {"rank", a.rank},
                              {"answer", word(a.answer)},
                              {"why", a.why},
                              {"compared", a.compared},
                              {"differ", a.differ},
                              {"op", nullptr},
                              {"bit", nullptr},
                              {"seconds", a.seconds},
                              {"text", audit_text(a)}};
  if (a.op) j["op"] = {{"index", a.op.row()}, {"name", a.op_name}, {"module", a.module}};
  if (a.bit)
    j["bit"] = {{"element", a.bit->element},
                {"bit", a.bit->bit},
                {"recorded", a.bit->recorded},
                {"here", a.bit->here}};
  return j.dump(2) + "\n";
}

}  // namespace nanquest
