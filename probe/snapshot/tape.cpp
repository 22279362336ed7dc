#include "probe/snapshot/tape.h"

#include <algorithm>
#include <string>

#include "probe/snapshot/check.h"

namespace nanquest {
namespace {

Error fault(const char* table, std::size_t row, const std::string& what) {
  return {ErrorCode::bad_file, std::string("tape/") + table + " row " + std::to_string(row) + ": " + what,
          ""};
}

}  // namespace

bool has_clips(const TapeDoc& tape) {
  return std::any_of(tape.steps.begin(), tape.steps.end(),
                     [](const TapeStep& step) { return step.clip != 0; });
}

Status check_tape(const TapeDoc& tape) {
  if (Status good = check_doc(tape.trace); !good)
    return Error{good.error().code, "the tape's " + good.error().message, good.error().hint};
  const auto ops = static_cast<std::int32_t>(tape.trace.ops.size());
  const auto rows = static_cast<std::int32_t>(tape.trace.tensors.size());
  std::int32_t before = 0;
  for (std::size_t i = 0; i < tape.steps.size(); ++i) {
    const TapeStep& step = tape.steps[i];
    if (step.gate < before || step.gate > ops) return fault("steps", i, "its gate is out of order");
    before = step.gate;
    if (step.end != kNone && (step.end < before || step.end > ops))
      return fault("steps", i, "its end is out of order");
    if (step.end != kNone) before = step.end;
    if (step.loss_op < kNone || step.loss_op >= ops || step.loss < kNone || step.loss >= rows ||
        (step.loss_op == kNone) != (step.loss == kNone))
      return fault("steps", i, "its loss is in no table");
  }
  before = 0;
  for (std::size_t i = 0; i < tape.reads.size(); ++i) {
    if (tape.reads[i].op < before || tape.reads[i].op >= ops)
      return fault("reads", i, "its op is out of order");
    before = tape.reads[i].op;
  }
  return {};
}

}  // namespace nanquest
