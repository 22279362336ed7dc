#include "replay/diff/pair_values.h"

#include <functional>

namespace nanquest::diff {

PairValues values_at(const Steps& steps, const OpPair& pair, const Edits& in_a, const Edits& in_b) {
  PairValues both;
  RunOptions left = in_a.options(), right = in_b.options();
  left.stop_after = pair.a.row(), right.stop_after = pair.b.row();
  const auto keep = [](std::function<bool(std::vector<c10::IValue>&)> before,
                       std::vector<c10::IValue>& into) {
    return [before = std::move(before), &into](std::vector<c10::IValue>& stack) {
      const bool done = before && before(stack);
      into.clear();
      for (const c10::IValue& value : stack) into.push_back(copied(value));
      return done;
    };
  };
  left.edit.op_edit[pair.a.row()] = keep(left.edit.op_edit[pair.a.row()], both.given_a);
  right.edit.op_edit[pair.b.row()] = keep(right.edit.op_edit[pair.b.row()], both.given_b);
  const auto made = [&](const OpPair&, const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    for (const at::Tensor& t : a) both.made_a.push_back(t.defined() ? t.detach().clone() : t);
    for (const at::Tensor& t : b) both.made_b.push_back(t.defined() ? t.detach().clone() : t);
  };
  (void)lockstep({&steps.a, &left}, {&steps.b, &right}, {pair}, made);
  return both;
}

}  // namespace nanquest::diff
