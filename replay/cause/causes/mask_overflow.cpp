// MASK_OVERFLOW: a mask constant leaves the range. Proof: every bad element holds, in one operand, one of at
// most two large constants that were not computed from data (a number in the program, a mask passed in, or
// made from such by moving, casting, 1 - mask, mask · number); with 0 in place of that operand the op, one
// precision up, is inside the format at these elements, and with the operand it is not.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Smaller ones are not masks: a shift, a scale.
constexpr double kSmallest = 1e3;

/// At most two different values.
bool few_values(const at::Tensor& x) {
  if (x.numel() == 0) return false;
  const double low = x.min().item<double>(), high = x.max().item<double>();
  return at::logical_or(x == low, x == high).all().item<bool>();
}

/// Counts of things; all large floating-point values are whole numbers.
bool holds_small_whole_numbers(const at::Tensor& x) {
  return at::logical_and(x == x.round(), x.abs() < 1e3).all().item<bool>();
}

/// finfo.min, or a round large number such as -1e9: people write these, training doesn't compute them.
bool written_by_hand(double value) {
  const double size = std::abs(value), decimal = std::log10(size);
  for (const double end : {65504.0, 57344.0, 448.0, 3.3895313892515355e38, 3.4028234663852886e38})
    if (size == end) return true;
  return size >= 1e4 && decimal == std::round(decimal);
}

/// The values of a mask that was passed in: zeros beside masked places, or masked everywhere with a number
/// that only people write.
bool is_table(const at::Tensor& x) {
  if (!few_values(x)) return false;
  const double low = x.min().item<double>(), high = x.max().item<double>();
  return low == 0 || high == 0 || (low == high && written_by_hand(low));
}

/// True if the operand is a table of constants, not computed from data or weights.
bool is_mask_table(const Case& c, std::int32_t op, std::string_view name, int depth = 0) {
  if (is_constant(c, op, name)) return depth > 0 || !c.is_one_of(op, {"add", "sub", "rsub"});
  const at::Tensor values = operand(c, op, name);
  if (!values.defined() || depth > 6 || is_trained(c, op, name)) return false;
  const std::int32_t maker = computed_by(c, op, name);
  // Made from numbers by the host while the step ran: not computed, like a value that was passed in.
  if (!c.row(maker) || (c.row(maker)->flags & kOpHostWrite)) return is_table(values);
  if (c.is_one_of(maker, {"masked_fill", "where", "full", "fill", "scalar_tensor", "full_like", "triu",
                          "tril", "zeros", "ones", "lift_fresh"}))
    return few_values(values);
  if (c.is_one_of(maker, {"mul", "add", "sub", "rsub", "minimum", "maximum"}))
    return few_values(values) && is_mask_table(c, maker, "self", depth + 1) &&
           is_mask_table(c, maker, "other", depth + 1);
  // The result of a comparison is 0 or 1: a table, however it was computed.
  return is_zero_or_one(values);
}

/// True if the number in the operand's bad elements is a mask value: the operand is a mask, or a mask was
/// written over data or added to data just before (which rounding then removed).
bool is_mask(const Case& c, std::int32_t op, std::string_view name, double constant) {
  if (is_mask_table(c, op, name)) return true;
  const std::int32_t maker = computed_by(c, op, name);
  const auto near = [&](double x) { return std::abs(x - constant) <= 1e-2 * std::abs(constant); };
  const auto is_number = [&](std::string_view argument) {
    const auto number = c.row(maker) ? number_of(c, maker, argument) : std::nullopt;
    return number && near(*number);
  };
  if (c.is_one_of(maker, {"masked_fill"})) return is_number("value");
  if (c.is_one_of(maker, {"where"})) return is_number("self") || is_number("other");
  if (!c.is_one_of(maker, {"add", "sub"})) return false;
  for (const std::string_view side : {"self", "other"}) {
    const at::Tensor values = operand(c, maker, side);
    if (values.defined() && !is_constant(c, maker, side) && is_mask_table(c, maker, side) &&
        (near(values.min().item<double>()) || near(values.max().item<double>())))
      return true;
  }
  return false;
}

struct MaskFill {
  std::string_view operand;
  double constant = 0;
  double without = 0;  ///< amax of the result at these elements with 0 in place of the mask
};

Finding finding(const Case& c, const MaskFill& mask, const at::Tensor& out, const at::Tensor& exact,
                const at::Tensor& bad) {
  const double limit = *format_max(out);
  const at::Tensor there = exact.masked_select(bad);
  const double beyond = there.index({there.abs().argmax()}).item<double>();
  Finding f;
  f.precision = true;
  f.needs = FormatHalf::range;
  f.source = "the op recomputed in fp64 from its recorded inputs, with the mask and without";
  f.evidence.push_back({"mask constant at the bad elements", number_text(mask.constant), ""});
  f.evidence.push_back({"result there (recomputed in fp64)", number_text(beyond), number_text(limit)});
  f.evidence.push_back({"the same without the mask", number_text(mask.without), number_text(limit)});
  f.explanation = c.op_text(c.op_index()) + " takes the mask constant " + number_text(mask.constant) +
                  " to " + number_text(beyond) + ", but " + format_name(out) + " ends at " +
                  number_text(limit) + ": " + count_text(count_true(bad), "element") +
                  " became infinite, where a large finite number was "
                  "meant.";
  f.advice =
      "Mask with masked_fill (which replaces the score instead of adding to it), or with a number well "
      "inside the format (-1e4 in fp16); don't add two masks of finfo.min.";
  const double rest = std::copysign(limit / 4, mask.constant);
  const std::string_view name = operand_name(*c.op(), mask.operand);
  if (is_constant(c, c.op_index(), name))
    f.wanted.push_back(edit_constant(c, c.op_index(), name, mask.constant, rest));
  else if (rest < 0)
    f.wanted.push_back(clamp_argument(c, c.op_index(), name, rest, std::numeric_limits<double>::quiet_NaN()));
  else
    f.wanted.push_back(clamp_argument(c, c.op_index(), name, std::numeric_limits<double>::quiet_NaN(), rest));
  f.wanted.push_back(saturate_result(c, c.op_index()));
  return f;
}

/// The op one precision up with operand `name` set to 0 at the bad elements.
std::optional<at::Tensor> at_rest(const Case& c, std::string_view name, const at::Tensor& bad) {
  const auto position = argument_position(*c.op(), operand_name(*c.op(), name));
  std::vector<c10::IValue> arguments = c.values(c.op_index()).arguments;
  if (!position) return std::nullopt;
  c10::IValue& value = arguments[*position];
  if (value.isScalar()) {
    value = 0.0;
  } else {
    const at::Tensor x = value.toTensor();
    // If the mask is broadcast, an entry is set to 0 if any bad element uses it.
    value = at::where(at::logical_and(x.expand(bad.sizes()) != 0, bad), at::zeros({}, x.options()),
                      x.expand(bad.sizes()))
                .contiguous();
  }
  return evaluate(*c.op(), arguments, Precision::fp64);
}

std::optional<MaskFill> mask_in(const Case& c, std::string_view name, const at::Tensor& out,
                                const at::Tensor& bad) {
  const at::Tensor given = operand(c, c.op_index(), name);
  const auto shaped = given.defined() ? broadcast(given, out.sizes()) : std::nullopt;
  if (!shaped) return std::nullopt;
  const at::Tensor there = shaped->masked_select(bad);
  if (!all_finite(there) || !few_values(there) || there.abs().min().item<double>() < kSmallest ||
      there.min().item<double>() * there.max().item<double>() < 0)
    return std::nullopt;
  // A mask value is large and negative; a positive one must be a number that only people write.
  if (there.max().item<double>() > 0 && !written_by_hand(there.max().item<double>())) return std::nullopt;
  if (!is_mask(c, c.op_index(), name, there.min().item<double>())) return std::nullopt;
  const auto rested = at_rest(c, name, bad);
  if (!rested || rested->sizes() != out.sizes()) return std::nullopt;
  const at::Tensor left = wide(*rested).masked_select(bad);
  const double without = finite_amax(left);
  if (!all_finite(left) || without > *format_max(out)) return std::nullopt;
  const double low = there.min().item<double>(), high = there.max().item<double>();
  return MaskFill{name, std::abs(low) > std::abs(high) ? low : high, without};
}

std::optional<Finding> examine_mask_overflow(const Case& c, const Subject& subject) {
  const OpValues& values = c.values(c.op_index());
  const at::Tensor out = values.bad_output();
  if (!out.defined() || !out.is_floating_point()) return std::nullopt;
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (t.is_floating_point() && count_true(at::isnan(wide(t))) > 0) return std::nullopt;
  const auto exact = evaluate(*c.op(), values.arguments, Precision::fp64);
  if (!exact || exact->sizes() != out.sizes()) return std::nullopt;
  // What is infinite in exact arithmetic too was infinite in the inputs: another mask with -Inf, and
  // intended.
  const at::Tensor bad = at::logical_and(bad_mask(out), at::isfinite(wide(*exact)));
  const at::Tensor harmful = at::isnan(wide(out));
  if (count_true(bad) == 0 || count_true(harmful) > 0) return std::nullopt;
  if (count_true(at::logical_and(bad, wide(*exact).abs() < *format_max(out) * (1 - 1e-3))) > 0)
    return std::nullopt;
  std::optional<MaskFill> mask;
  for (const std::string_view name : {"self", "other", "tensor1", "tensor2"}) {
    if (name != "self" && (subject.op == "_to_copy" || subject.op == "copy")) continue;
    auto found = mask_in(c, name, out, bad);
    if (!found) continue;
    // In 1 · -1e9 the constant is the mask; the other operand is a table of 0 and 1.
    if (!mask || std::abs(found->constant) > std::abs(mask->constant)) mask = found;
  }
  if (!mask) return std::nullopt;
  const std::string_view factor = mask->operand == "self" ? "other" : "self";
  // Whole numbers select (0 and 1, or 1 - the number of a packed sequence); a factor of the data is a scale.
  if (subject.op == "mul" && is_constant(c, c.op_index(), mask->operand) &&
      !holds_small_whole_numbers(operand(c, c.op_index(), factor)))
    return std::nullopt;
  return finding(c, *mask, out, wide(*exact), bad);
}

}  // namespace

NANQUEST_CAUSE(mask_overflow) = {
    .label = Label::mask_overflow,
    .origins = {Origin::op},
    .phases = {Phase::forward},
    .ops = {{"add", ""},
            {"sub", ""},
            {"rsub", ""},
            {"mul", ""},
            {"div", ""},
            {"_to_copy", "self"},
            {"where", ""},
            {"baddbmm", "self"},
            {"addmm", "self"}},
    .depth = Depth::operand,
    .examine = examine_mask_overflow,
};

}  // namespace nanquest
