// MASK_OVERFLOW: a mask constant leaves the range. Proof: every bad element holds, in one operand, one of at
// most two large constants that were not computed from data (a number in the program, a mask passed in, or
// made from such by moving, casting, 1 - mask, mask · number); with 0 in place of that operand the op, one
// precision up, is inside the format at these elements, and with the operand it is not. For an op that
// combines elements (a sum, a product of matrices) or takes a power: with 0 in place of the mask constants
// alone, whatever else the operand holds.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "probe/base/one_of.h"
#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/mask_constant.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Above this the constant may still leave the range in what follows (a variance).
constexpr double kUsual = 1e4;

/// Counts of things; all large floating-point values are whole numbers.
bool holds_small_whole_numbers(const at::Tensor& x) {
  return at::logical_and(x == x.round(), x.abs() < 1e3).all().item<bool>();
}

/// The constant made smaller where the program wrote it, or where the op reads it.
void want_smaller_constant(const Case& c, const MaskedResult& mask, double rest, Finding& f) {
  const std::string_view name = operand_name(*c.op(), mask.operand);
  constexpr double kOpen = std::numeric_limits<double>::quiet_NaN();
  const auto want = [&](double to) {
    if (c.row(mask.source.op) && is_constant(c, mask.source.op, "value"))
      f.wanted.push_back(edit_constant(c, mask.source.op, "value", mask.constant, to));
    if (is_constant(c, c.op_index(), name))
      f.wanted.push_back(edit_constant(c, c.op_index(), name, mask.constant, to));
    else
      f.wanted.push_back(clamp_argument(c, c.op_index(), name, to < 0 ? to : kOpen, to < 0 ? kOpen : to));
  };
  want(rest);
  if (std::abs(rest) > kUsual) want(std::copysign(kUsual, rest));
}

Finding finding(const Case& c, const MaskedResult& mask, const at::Tensor& out, const at::Tensor& exact,
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
      "inside the format (-1e4 in fp16); don't add, sum or scale masks of finfo.min.";
  want_smaller_constant(c, mask, fitting_constant(c, mask, out), f);
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

std::optional<MaskedResult> mask_in(const Case& c, std::string_view name, const at::Tensor& out,
                                    const at::Tensor& bad) {
  const at::Tensor given = operand(c, c.op_index(), name);
  const auto shaped = given.defined() ? broadcast(given, out.sizes()) : std::nullopt;
  if (!shaped) return std::nullopt;
  const at::Tensor there = shaped->masked_select(bad);
  if (!all_finite(there) || !few_values(there) || there.abs().min().item<double>() < kSmallestMask ||
      there.min().item<double>() * there.max().item<double>() < 0)
    return std::nullopt;
  // A mask value is large and negative; a positive one must be a number that only people write.
  if (there.max().item<double>() > 0 && !is_written_by_hand(there.max().item<double>())) return std::nullopt;
  const auto source = mask_source(c, c.op_index(), name, there.min().item<double>());
  if (!source) return std::nullopt;
  const auto rested = at_rest(c, name, bad);
  if (!rested || rested->sizes() != out.sizes()) return std::nullopt;
  const at::Tensor left = wide(*rested).masked_select(bad);
  const double without = finite_amax(left);
  if (!all_finite(left) || without > *format_max(out)) return std::nullopt;
  const double low = there.min().item<double>(), high = there.max().item<double>();
  return MaskedResult{std::string(name), std::abs(low) > std::abs(high) ? low : high, without, *source};
}

/// The operand of an elementwise op that is a mask at every bad element.
std::optional<MaskedResult> masked_operand(const Case& c, std::string_view op, const at::Tensor& out,
                                           const at::Tensor& bad) {
  std::optional<MaskedResult> mask;
  for (const std::string_view name : {"self", "other", "tensor1", "tensor2"}) {
    if (name != "self" && (op == "_to_copy" || op == "copy")) continue;
    auto found = mask_in(c, name, out, bad);
    if (!found) continue;
    // In 1 · -1e9 the constant is the mask; the other operand is a table of 0 and 1.
    if (!mask || std::abs(found->constant) > std::abs(mask->constant)) mask = found;
  }
  if (!mask) return std::nullopt;
  const std::string_view factor = mask->operand == "self" ? "other" : "self";
  // Whole numbers select (0 and 1, or 1 - the number of a packed sequence); a factor of the data is a scale.
  if (op == "mul" && is_constant(c, c.op_index(), mask->operand) &&
      !holds_small_whole_numbers(operand(c, c.op_index(), factor)))
    return std::nullopt;
  return mask;
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
  if (count_true(bad) == 0 || count_true(at::isnan(wide(out))) > 0) return std::nullopt;
  // A mean of what fits may have a sum that does not.
  const bool inside =
      count_true(at::logical_and(bad, wide(*exact).abs() < *format_max(out) * (1 - 1e-3))) > 0;
  auto mask = inside ? std::nullopt : masked_operand(c, subject.op, out, bad);
  if (!mask && !is_one_of(subject.op, {"add", "sub", "rsub", "mul", "div", "_to_copy", "where"}))
    mask = masked_elements(c, out, bad);
  return mask ? std::optional(finding(c, *mask, out, wide(*exact), bad)) : std::nullopt;
}

}  // namespace

NANQUEST_CAUSE(mask_overflow) = {
    .label = Label::mask_overflow,
    .origins = {Origin::op},
    .phases = {Phase::forward},
    .ops = {{"add", ""},          {"sub", ""},   {"rsub", ""},    {"mul", ""},   {"div", ""},
            {"_to_copy", "self"}, {"where", ""}, {"baddbmm", ""}, {"addmm", ""}, {"mm", ""},
            {"bmm", ""},          {"mv", ""},    {"dot", ""},     {"sum", ""},   {"mean", ""},
            {"cumsum", ""},       {"pow", ""},   {"var", ""},     {"std", ""},   {"linalg_vector_norm", ""}},
    .depth = Depth::operand,
    .examine = examine_mask_overflow,
};

}  // namespace nanquest
