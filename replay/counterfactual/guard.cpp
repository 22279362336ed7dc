#include <ATen/ATen.h>

#include <cmath>
#include <functional>

#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"
#include "replay/counterfactual/own_readers.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Small number whose square root still has a derivative well inside the format.
double root_eps(at::ScalarType type) {
  return type == at::kHalf ? 1e-3 : type == at::kDouble ? 1e-16 : 1e-8;
}

/// Distance from ±1 at which the derivative of acos is finite and representable.
double unit_eps(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return 2e-3;
    case at::kBFloat16:
      return 1.6e-2;
    case at::kDouble:
      return 1e-12;
    default:
      return 1e-6;
  }
}

/// Elements of [from, to) become `to`, as with a clamp in every format; smaller ones are another fault.
void raise(const at::Tensor& t, double from, double to) {
  t.masked_fill_(at::logical_and(t >= from, t < to), to);
}

/// `type` is the format that the step was recorded in: a guard is the same number whatever the step runs in.
void apply(const at::Tensor& t, Guard guard, at::ScalarType type) {
  if (!t.is_floating_point() && guard != Guard::zero_to_one) return;
  switch (guard) {
    case Guard::zero_to_eps:
      raise(t, 0, format_tiny(at::empty({0}, type)).value_or(1));
      return;
    case Guard::zero_to_one:
      t.masked_fill_(t == 0, 1);
      return;
    case Guard::minus_one_to_eps:
      raise(t, -1, -1 + unit_eps(type));
      return;
    case Guard::zero_to_safe_root:
      raise(t, 0, root_eps(type));
      return;
    case Guard::unit_inwards:
      raise(t, -1, -1 + unit_eps(type));
      t.masked_fill_(at::logical_and(t <= 1, t > 1 - unit_eps(type)), 1 - unit_eps(type));
      return;
  }
}

std::string guard_text(Guard guard) {
  switch (guard) {
    case Guard::zero_to_eps:
      return "zeros raised to the format's smallest normal number before ";
    case Guard::zero_to_one:
      return "zeros replaced by one in the denominator of ";
    case Guard::minus_one_to_eps:
      return "-1 moved to -1 + eps before ";
    case Guard::zero_to_safe_root:
      return "zeros replaced by a small eps before ";
    case Guard::unit_inwards:
      return "±1 moved inwards by a small eps before ";
  }
  return "";
}

/// A count is a whole number.
bool holds_numbers(const at::Tensor& t) {
  return t.is_floating_point() || at::isIntegralType(t.scalar_type(), /*includeBool=*/false);
}

/// `op` and its derivative read what `write` makes of this argument.
RunOptions written(const Case& c, std::int32_t op, std::size_t position, const Write& write) {
  const auto value = [write](const at::Tensor& t) {
    if (!holds_numbers(t)) return t;
    const at::Tensor copy = unexpanded(t).clone();
    write(copy);
    return copy.expand(t.sizes());
  };
  return reading_instead(c, op, {{position, value}});
}

/// The memory itself is changed, for all that read it after that.
RunOptions written_for_all(std::int32_t op, std::size_t position, const Write& write) {
  RunOptions options;
  options.edit.op_edit[op] = [position, write](std::vector<c10::IValue>& stack) {
    if (position >= stack.size()) return false;
    for (const at::Tensor& t : tensors_in({stack[position]}))
      if (holds_numbers(t)) write(unexpanded(t));
    return false;
  };
  return options;
}

/// The format of argument `argument` of `op`, as recorded.
at::ScalarType type_of(const Case& c, std::int32_t op, std::string_view argument) {
  const auto position = argument_position(*c.row(op), argument);
  const std::vector<c10::IValue>& given = c.values(op).arguments;
  if (position && *position < given.size())
    for (const at::Tensor& t : tensors_in({given[*position]}))
      if (t.is_floating_point()) return t.scalar_type();
  return at::kFloat;
}

/// True if `write` changes some elements of argument `argument` of `op` and leaves some as they are.
bool is_partial(const Case& c, std::int32_t op, std::size_t position, const Write& write) {
  const std::vector<c10::IValue>& given = c.values(op).arguments;
  if (position >= given.size()) return false;
  for (const at::Tensor& t : tensors_in({given[position]}))
    if (holds_numbers(t) && write_elsewhere(unexpanded(t).clone(), write) > 0) return true;
  return false;
}

/// The change that `write` makes to the argument at `position` applied to as many elements of another
/// argument of `op`; nothing if there is no other, or `write` changes nothing.
std::optional<RunOptions> on_another_argument(const Case& c, std::int32_t op, std::size_t position,
                                              const Write& write) {
  const std::vector<c10::IValue>& given = c.values(op).arguments;
  const at::Tensor guarded = position < given.size() ? tensor_of(given[position]) : at::Tensor();
  if (!guarded.defined() || !guarded.is_floating_point()) return std::nullopt;
  const at::Tensor after = unexpanded(guarded).clone();
  write(after);
  const at::Tensor put = wide(after).masked_select(wide(after) != wide(unexpanded(guarded)));
  for (std::size_t other = 0; other < given.size() && put.numel() > 0; ++other) {
    const at::Tensor t = other == position ? at::Tensor() : tensor_of(given[other]);
    if (!t.defined() || !t.is_floating_point() || t.numel() == 0) continue;
    return written(c, op, other, [put](const at::Tensor& x) {
      const std::int64_t n = std::min(put.numel(), x.numel());
      x.masked_scatter_((at::arange(x.numel()) < n).view(x.sizes()), put.to(x.scalar_type()));
    });
  }
  return std::nullopt;
}

/// Fills `placebo` of a change by `write`.
void add_guard_placebo(const Case& c, std::int32_t op, std::size_t position, const std::string& text,
                       const Write& write, Change& change) {
  if (is_partial(c, op, position, write)) {
    change.placebo = {written(c, op, position, [write](const at::Tensor& t) { write_elsewhere(t, write); })};
    change.placebo_text = "the same done to other elements that " + c.op_text(op) + " reads";
  } else if (auto elsewhere = on_another_argument(c, op, position, write)) {
    change.placebo = {std::move(*elsewhere)};
    change.placebo_text = "as many elements of another argument of " + c.op_text(op) + " set to the same";
  } else if (const std::int32_t other = placebo_op(c, op); other != kNone) {
    const auto first = static_cast<std::size_t>(c.tensor_arguments(other).front().position);
    change.placebo = {written(c, other, first, write)};
    change.placebo_text = text + c.op_with_number(other);
  }
}

/// `write` on argument `argument` of `op`, for the op and its derivative; `text` says what it does, up to the
/// op's name.
Change writing_argument(const Case& c, std::int32_t op, std::string_view argument, const std::string& text,
                        const Write& write) {
  Change change;
  change.text = text + c.op_text(op);
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  const auto position = argument_position(*c.row(op), argument);
  if (!position) return change;
  change.options = written(c, op, *position, write);
  add_guard_placebo(c, op, *position, text, write, change);
  if (others_read(c, op, *position)) {
    Change for_all = change;
    for_all.text += ", and before all others that read the same values";
    for_all.options = written_for_all(op, *position, write);
    change.otherwise = {std::move(for_all)};
  }
  return change;
}

/// What `write` does to argument `argument` of `op`, in Python: `with`, as in SourceEdit.
SourceEdit edit_of(const Case& c, std::int32_t op, std::string_view argument, std::string with) {
  return {
      plain_name(*c.row(op)), op, argument_position(*c.row(op), argument).value_or(0), {}, std::move(with)};
}

/// `guard` in Python for this argument: a clamp, where no element lies below what the guard moves.
std::string guard_in_python(const at::Tensor& t, Guard guard, at::ScalarType type) {
  const bool ordered = t.defined() && t.numel() > 0;
  const double low = ordered ? wide(t).min().item<double>() : -1;
  const auto raised = [low](double eps) {
    const std::string e = exact_text(eps);
    return low >= 0 ? "{}.clamp(min=" + e + ")" : "{}.masked_fill(({} >= 0) & ({} < " + e + "), " + e + ")";
  };
  const std::string unit = exact_text(unit_eps(type));
  switch (guard) {
    case Guard::zero_to_eps:
      return raised(format_tiny(at::empty({0}, type)).value_or(1));
    case Guard::zero_to_one:
      // A count has no numbers between 0 and 1, which a clamp would move.
      return low >= 0 && at::equal(wide(t), wide(t).round()) ? "{}.clamp(min=1)"
                                                             : "{}.masked_fill({} == 0, 1)";
    case Guard::minus_one_to_eps:
      return low >= -1 ? "{}.clamp(min=-1 + " + unit + ")" : "";
    case Guard::zero_to_safe_root:
      return raised(root_eps(type));
    case Guard::unit_inwards:
      return low >= -1 && wide(t).max().item<double>() <= 1 ? "{}.clamp(-1 + " + unit + ", 1 - " + unit + ")"
                                                            : "";
  }
  return "";
}

/// A number close to 1 or -1, but not equal, as "1 - 0.0005".
std::string bound_text(double bound) {
  const double one = bound < 0 ? -1 : 1;
  const double off = bound - one;
  if (off == 0 || std::abs(off) > 0.1) return number_text(bound);
  return number_text(one) + (off < 0 ? " - " : " + ") + number_text(std::abs(off));
}

/// [low, high] in words; "" for an open end.
std::string interval_text(double low, double high) {
  if (std::isnan(low)) return "at most " + bound_text(high);
  if (std::isnan(high)) return "at least " + bound_text(low);
  return "between " + bound_text(low) + " and " + bound_text(high);
}

}  // namespace

Change guard_argument(const Case& c, std::int32_t op, std::string_view argument, Guard guard) {
  const at::ScalarType type = type_of(c, op, argument);
  Change change = writing_argument(c, op, argument, guard_text(guard),
                                   [guard, type](const at::Tensor& t) { apply(t, guard, type); });
  const auto position = argument_position(*c.row(op), argument);
  const std::vector<c10::IValue>& given = c.values(op).arguments;
  if (!position || *position >= given.size()) return change;
  std::string with = guard_in_python(tensor_of(given[*position]), guard, type);
  if (!with.empty()) change.edit = edit_of(c, op, argument, std::move(with));
  return change;
}

Change clamp_argument(const Case& c, std::int32_t op, std::string_view argument, double low, double high) {
  const auto clamp = [low, high](const at::Tensor& t) {
    if (!t.is_floating_point()) return;
    if (!std::isnan(low)) t.masked_fill_(t < low, low);
    if (!std::isnan(high)) t.masked_fill_(t > high, high);
  };
  Change change = writing_argument(c, op, argument,
                                   "elements clamped to " + interval_text(low, high) + " before ", clamp);
  std::string with = "{}.clamp(";
  if (!std::isnan(low)) with += "min=" + exact_text(low);
  if (!std::isnan(high)) with += (std::isnan(low) ? "max=" : ", max=") + exact_text(high);
  change.edit = edit_of(c, op, argument, with + ")");
  return change;
}

Change regularise_matrix(const Case& c, std::int32_t op, std::string_view argument) {
  const auto write = [](const at::Tensor& t) {
    if (t.dim() < 2 || !t.is_floating_point()) return;
    const std::int64_t n = std::min(t.size(-1), t.size(-2));
    const double size = std::max(finite_amax(t), 1e-3);
    // Small compared with the matrix, large compared with the format's rounding, and different in each row.
    t.diagonal(0, -2, -1).add_((at::arange(1, n + 1, t.options()) / static_cast<double>(n)) * (size * 1e-2));
  };
  Change change =
      writing_argument(c, op, argument, "a small diagonal of different numbers added before ", write);
  if (const auto position = argument_position(*c.row(op), argument)) {
    // A matrix that is singular, or has a repeated eigenvalue, stays so.
    change.placebo = {written(c, op, *position, [](const at::Tensor& t) { t.mul_(2); })};
    change.placebo_text = "the matrices doubled before " + c.op_text(op);
  }
  return change;
}

}  // namespace nanquest
