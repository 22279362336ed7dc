#include <ATen/ATen.h>

#include <algorithm>

#include "replay/case/branch.h"
#include "replay/case/case.h"
#include "replay/case/derivative.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"
#include "replay/counterfactual/own_readers.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// One argument of an op, and where it is to read another number.
struct Replaced {
  std::size_t position;
  at::Tensor mask;
};

/// Floating arguments of `forward` to which `mask` applies.
std::vector<Replaced> replaced_arguments(const Case& c, std::int32_t forward, const at::Tensor& mask,
                                         const std::vector<std::int64_t>& reduced) {
  std::vector<Replaced> found;
  const std::vector<c10::IValue>& arguments = c.values(forward).arguments;
  for (const Case::TensorArgument& a : c.tensor_arguments(forward)) {
    const auto position = static_cast<std::size_t>(a.position);
    const at::Tensor t = position < arguments.size() ? tensor_of(arguments[position]) : at::Tensor();
    if (!t.defined() || !t.is_floating_point() || t.unsafeGetTensorImpl()->is_wrapped_number()) continue;
    if (const at::Tensor there = spread(mask, t.sizes(), reduced); there.defined())
      found.push_back({position, there});
  }
  return found;
}

at::Tensor put(const at::Tensor& t, const at::Tensor& mask, double value) {
  return at::where(mask, at::full({}, value, t.options()), t);
}

/// A number at which `forward` and its slope are finite.
std::optional<double> safe_number(const Case& c, std::int32_t forward, const std::vector<Replaced>& where) {
  for (const double value : {0.5, 2.0, 1.0}) {
    std::vector<c10::IValue> arguments = c.values(forward).arguments;
    for (const Replaced& r : where)
      arguments[r.position] = put(arguments[r.position].toTensor(), r.mask, value);
    const auto made = evaluate(*c.row(forward), arguments, Precision::fp64);
    if (!made || !all_finite(made->masked_select(bad_mask(c.values(forward).bad_output())))) continue;
    std::int64_t singular = 0;
    for (const Slopes& s : slopes_of(*c.row(forward), arguments))
      for (const Replaced& r : where)
        if (s.singular.defined() && s.singular.sizes() == r.mask.sizes())
          singular += count_true(at::logical_and(s.singular, r.mask));
    if (singular == 0) return value;
  }
  return std::nullopt;
}

/// `forward` and its derivatives read `value` at these places.
RunOptions with_number_read(const Case& c, std::int32_t forward, const std::vector<Replaced>& where,
                            double value) {
  std::vector<ReadInstead> what;
  what.reserve(where.size());
  for (const Replaced& r : where)
    what.push_back({r.position,
                    [mask = r.mask, value](const at::Tensor& t) {
                      return t.sizes() == mask.sizes() ? put(t, mask, value) : t;
                    },
                    /*of_this_view=*/true});
  return reading_instead(c, forward, what);
}

/// As many other elements as in each mask, as far as there are any; empty if a mask leaves none.
std::vector<Replaced> elsewhere(std::vector<Replaced> where) {
  for (Replaced& r : where) {
    r.mask = spread_choice(at::logical_not(r.mask), count_true(r.mask));
    if (count_true(r.mask) == 0) return {};
  }
  return where;
}

/// In the first floating tensor of `op`, `n` elements become `value`.
std::optional<RunOptions> elements_set(const Case& c, std::int32_t op, std::int64_t n, double value) {
  const std::vector<Case::TensorArgument> arguments = c.tensor_arguments(op);
  if (arguments.empty()) return std::nullopt;
  RunOptions options;
  options.edit.op_edit[op] = [first = static_cast<std::size_t>(arguments.front().position), n,
                              value](std::vector<c10::IValue>& stack) {
    const at::Tensor t = first < stack.size() ? tensor_of(stack[first]) : at::Tensor();
    if (!t.defined() || !t.is_floating_point() || t.numel() == 0) return false;
    at::Tensor copy = t.clone(at::MemoryFormat::Contiguous);
    copy.view({-1}).narrow(0, 0, std::min(n, copy.numel())).fill_(value);
    stack[first] = copy;
    return false;
  };
  return options;
}

void add_placebo(const Case& c, std::int32_t op, std::int64_t n, double value, Change& change) {
  const std::int32_t other = placebo_op(c, op);
  if (other == kNone) return;
  auto options = elements_set(c, other, n, value);
  if (!options) return;
  change.placebo = {std::move(*options)};
  change.placebo_text =
      count_text(n, "element") + " that " + c.op_with_number(other) + " reads set to " + number_text(value);
}

}  // namespace

std::optional<Change> safe_branch(const Case& c, std::int32_t forward, const at::Tensor& mask,
                                  const std::vector<std::int64_t>& reduced) {
  const std::vector<Replaced> where = replaced_arguments(c, forward, mask, reduced);
  if (where.empty()) return std::nullopt;
  const auto value = safe_number(c, forward, where);
  if (!value) return std::nullopt;
  Change change;
  change.options = with_number_read(c, forward, where, *value);
  const std::int64_t n = count_true(where.front().mask);
  change.text = c.op_text(forward) + " reads " + number_text(*value) + " in " + count_text(n, "element") +
                " that the step doesn't use (a second where() before it)";
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  if (const std::vector<Replaced> others = elsewhere(where); !others.empty()) {
    change.placebo = {with_number_read(c, forward, others, *value)};
    change.placebo_text = "the same in as many elements of " + c.op_text(forward) + " that the step uses";
  } else {
    add_placebo(c, forward, n, *value, change);
  }
  return change;
}

Change equal_infinities(const Case& c, std::int32_t op) {
  Change change;
  change.text = "where " + c.op_text(op) + " subtracts an infinity from itself, both are taken as zero";
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  const std::string name = plain_name(*c.row(op));
  // The recursion that the op is part of has more ops of its kind; where nothing is infinite nothing changes.
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    if (c.row(i)->phase != c.row(op)->phase || plain_name(*c.row(i)) != name) continue;
    const auto a = argument_position(*c.row(i), "self"), b = argument_position(*c.row(i), "other");
    if (!a || !b) continue;
    change.options.edit.op_edit[i] = [a = *a, b = *b](std::vector<c10::IValue>& stack) {
      if (a >= stack.size() || b >= stack.size() || !stack[a].isTensor() || !stack[b].isTensor())
        return false;
      const at::Tensor x = stack[a].toTensor(), y = stack[b].toTensor();
      if (!x.is_floating_point() || !y.is_floating_point()) return false;
      const at::Tensor both = at::logical_and(at::isinf(x), x == y);
      if (both.sizes() != x.sizes() || count_true(both) == 0) return false;
      stack[a] = at::where(both, at::zeros({}, x.options()), x);
      stack[b] = at::where(both, at::zeros({}, y.options()), y.expand(both.sizes()));
      return false;
    };
  }
  add_placebo(c, op, std::max<std::int64_t>(1, c.culprit().count), 0, change);
  return change;
}

}  // namespace nanquest
