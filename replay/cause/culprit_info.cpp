#include "replay/cause/culprit_info.h"

#include "probe/trace/placement.h"

namespace nanquest {

std::vector<std::string> stack_of(const Case& c, const OpRow& op) {
  std::vector<std::string> stack;
  const OpRow* forward = op.forward_op == kNone ? nullptr : &c.doc().ops[op.forward_op];
  for (const OpRow* from : {forward, &op}) {
    if (!from || from->stack == kNone) continue;
    const std::vector<std::string>& frames = c.doc().stacks[from->stack];
    stack.insert(stack.end(), frames.begin(), frames.end());
  }
  return stack;
}

CulpritInfo culprit_info(const Case& c, std::int32_t index) {
  const Culprit& culprit = c.culprit();
  CulpritInfo info;
  info.index = index;
  if (const OpRow* op = c.row(index)) {
    info.op = op->name;
    info.node = op->node;
    info.module = c.module_of(index);
    info.stack = stack_of(c, *op);
  }
  info.tensor = culprit.tensor_name;
  info.part = part_of(c.doc(), culprit.tensor_name);
  info.pass = pass_of(c.doc(), OpId{index});
  info.value = from_word<BadValue>(culprit.value).value_or(BadValue::mixed);
  info.count = culprit.count;
  info.first = culprit.first;
  return info;
}

}  // namespace nanquest
