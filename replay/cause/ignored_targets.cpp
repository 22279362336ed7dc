#include "replay/cause/ignored_targets.h"

#include <ATen/ATen.h>

#include <map>
#include <set>
#include <vector>

#include "replay/case/origin.h"
#include "replay/case/values.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// More ops than these are not between a comparison and what is counted by it.
constexpr int kMaxOps = 32;

/// Ops through which a mask is counted, selected by or handed on, and the first argument to follow it
/// through.
const std::map<std::string, int>& mask_ops() {
  static const std::map<std::string, int> ops = {
      {"sum", 0},   {"count_nonzero", 0}, {"any", 0},         {"nonzero", 0},     {"_to_copy", 0},
      {"view", 0},  {"_unsafe_view", 0},  {"unsqueeze", 0},   {"squeeze", 0},     {"expand", 0},
      {"clone", 0}, {"alias", 0},         {"detach", 0},      {"reshape", 0},     {"slice", 0},
      {"mul", 0},   {"logical_and", 0},   {"bitwise_and", 0}, {"logical_not", 0}, {"bitwise_not", 0},
      {"index", 1}, {"masked_select", 1}, {"index_select", 2}};
  return ops;
}

bool compares(const std::string& name) {
  static const std::set<std::string> names = {"ne", "eq", "ge", "gt", "le", "lt"};
  return names.count(name) > 0;
}

bool negates(const std::string& name) {
  return name == "logical_not" || name == "bitwise_not";
}

/// What a batch is called after: the name of the tensor, if it has one.
std::string labels_text(const Case& c, std::int32_t op, std::int64_t count) {
  const std::string all = "All " + std::to_string(count);
  for (const Case::TensorArgument& argument : c.tensor_arguments(op)) {
    const SlotId slot = c.graph().slot(TensorId{argument.tensor});
    for (const NamedTensor& named : c.doc().batch)
      if (slot && named.slot == slot.row() && named.name.find("label") == std::string::npos &&
          named.name.find("target") == std::string::npos)
        return all + " elements of " + named.name;
  }
  return all + " labels";
}

IgnoredTargets told(const Case& c, std::int32_t op, const at::Tensor& targets, const std::string& why) {
  const bool alike = count_true(targets != targets.flatten()[0]) == 0;
  IgnoredTargets found;
  found.text = labels_text(c, op, targets.numel()) + " are ignored (" +
               (alike ? std::to_string(targets.flatten()[0].item<std::int64_t>()) : why) + ")";
  found.advice =
      "Skip such a batch, or divide the sum of the losses by max(count, 1). Look at why none is left: "
      "prompts that fill "
      "the whole length after truncation, a wrong ignore_index, a mask that is turned round.";
  return found;
}

std::optional<IgnoredTargets> of_class_loss(const Case& c, std::int32_t op) {
  const at::Tensor target = tensor_of(argument(c, op, "target"));
  const c10::IValue ignored = argument(c, op, "ignore_index");
  if (!target.defined() || target.numel() == 0 || !ignored.isInt() ||
      count_true(target != ignored.toInt()) > 0)
    return std::nullopt;
  return told(c, op, target, "");
}

/// The comparison itself: none of its elements counts.
std::optional<IgnoredTargets> of_comparison(const Case& c, std::int32_t op, bool negated) {
  const OpValues& values = c.values(op);
  const at::Tensor targets = tensor_of(argument(c, op, "self"));
  const c10::IValue with = argument(c, op, "other");
  if (!targets.defined() || targets.numel() == 0 || !at::isIntegralType(targets.scalar_type(), false) ||
      !with.isScalar() || values.outputs.empty())
    return std::nullopt;
  const at::Tensor passed = negated ? values.outputs[0].logical_not() : values.outputs[0];
  if (count_true(passed) > 0) return std::nullopt;
  return told(c, op, targets,
              "none of them is " + plain_name(*c.row(op)) + " " + number_text(with.toScalar().toDouble()));
}

}  // namespace

std::optional<IgnoredTargets> ignored_targets(const Case& c, std::int32_t op, std::string_view counted) {
  if (!c.row(op)) return std::nullopt;
  if (auto found = of_class_loss(c, op)) return found;
  struct Step {
    std::int32_t op;
    int first;  ///< argument
    bool negated;
  };
  const auto start = argument_position(*c.row(op), std::string(counted));
  std::vector<Step> open = {{op, start ? static_cast<int>(*start) : 0, false}};
  std::set<std::int32_t> seen;
  for (std::size_t i = 0; i < open.size() && i < kMaxOps; ++i)
    for (const Case::TensorArgument& a : c.tensor_arguments(open[i].op)) {
      if (a.position < open[i].first || (i == 0 && a.position != open[i].first)) continue;
      const std::int32_t from = c.producer(a.tensor, open[i].op);
      if (from == kNone || !seen.insert(from).second) continue;
      const std::string name = plain_name(*c.row(from));
      if (compares(name)) {
        if (auto found = of_comparison(c, from, open[i].negated)) return found;
      } else if (const auto handed_on = mask_ops().find(name); handed_on != mask_ops().end()) {
        open.push_back({from, handed_on->second, open[i].negated != negates(name)});
      }
    }
  // The count may come from outside of the step (num_items_in_batch); what it divides tells the same.
  const std::int32_t divided = computed_by(c, op, "self");
  return c.row(divided) ? of_class_loss(c, divided) : std::nullopt;
}

}  // namespace nanquest
