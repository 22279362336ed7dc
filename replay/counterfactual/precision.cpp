#include "replay/cause/case.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

Change precision_change(std::string text, ChangeSize size, Price price) {
  Change change;
  change.text = std::move(text);
  change.kind = ChangeKind::precision;
  change.size = size;
  change.price = price;
  return change;
}

}  // namespace

Change op_in(const Case& c, std::int32_t op, Precision precision) {
  Change change = precision_change(c.op_text(op) + " computed in " + precision_text(precision),
                                   ChangeSize::op, Price::protect_op);
  change.options.edit.op_precision[op] = precision;
  add_precision_placebo(c, change, op, precision);
  return change;
}

Change neighbours_in(const Case& c, std::int32_t op, Precision precision) {
  Change change = precision_change(
      c.op_text(op) + " and the ops that read its result, computed in " + precision_text(precision),
      ChangeSize::neighbours, Price::protect_op);
  change.options.edit.op_precision[op] = precision;
  for (std::int32_t reader : c.readers(op)) change.options.edit.op_precision[reader] = precision;
  add_precision_placebo(c, change, op, precision);
  return change;
}

Change module_in(const Case& c, const std::string& path, Precision precision) {
  Change change = precision_change("module " + path + " computed in " + precision_text(precision),
                                   ChangeSize::module, Price::protect_op);
  change.options.edit.module_precision[path] = precision;
  add_precision_placebo(c, change, c.op_index(), precision);
  return change;
}

Change step_in(const Case& c, Precision precision) {
  Change change = precision_change("the whole step in " + precision_text(precision), ChangeSize::step,
                                   Price::other_format);
  change.options.precision = precision;
  add_precision_placebo(c, change, c.op_index(), precision);
  return change;
}

}  // namespace nanquest
