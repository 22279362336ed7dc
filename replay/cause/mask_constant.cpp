#include "replay/cause/mask_constant.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "replay/blame/choice.h"
#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/numbers.h"

namespace nanquest {
namespace {

constexpr int kMaxPicks = 6;

bool near(double x, double constant) {
  return std::abs(x - constant) <= 1e-2 * std::abs(constant);
}

at::Tensor are_near(const at::Tensor& wide, double constant) {
  return (wide - constant).abs() <= 1e-2 * std::abs(constant);
}

/// The values of a mask that was passed in: zeros beside masked places, or masked everywhere with a number
/// that only people write.
bool is_table(const at::Tensor& x) {
  if (!few_values(x)) return false;
  const double low = x.min().item<double>(), high = x.max().item<double>();
  return low == 0 || high == 0 || (low == high && is_written_by_hand(low));
}

/// True if the operand is a table of constants, not computed from data or weights.
bool is_mask_table(const Case& c, std::int32_t op, std::string_view name, int depth = 0) {
  if (is_constant(c, op, name)) return depth > 0 || !c.is_one_of(op, {"add", "sub", "rsub"});
  const at::Tensor values = operand(c, op, name);
  if (!values.defined() || depth > 6 || is_trained(c, op, name)) return false;
  if (is_number_of_program(c, op, name)) return few_values(values);
  const std::int32_t maker = computed_by(c, op, name);
  // Made from numbers by the host while the step ran: not computed, like a value that was passed in.
  if (!c.row(maker) || (c.row(maker)->flags & kOpHostWrite)) return is_table(values);
  if (c.is_one_of(maker, {"masked_fill", "where", "full", "fill", "scalar_tensor", "full_like", "triu",
                          "tril", "zeros", "ones"}))
    return few_values(values);
  if (c.is_one_of(maker, {"mul", "add", "sub", "rsub", "minimum", "maximum"}))
    return few_values(values) && is_mask_table(c, maker, "self", depth + 1) &&
           is_mask_table(c, maker, "other", depth + 1);
  // The result of a comparison is 0 or 1: a table, however it was computed.
  return is_zero_or_one(values);
}

bool holds(const Case& c, std::int32_t op, std::string_view name, double constant) {
  const at::Tensor values = operand(c, op, name);
  return values.defined() && values.numel() > 0 && are_near(values, constant).any().item<bool>();
}

/// `maker` wrote this number over what it was given.
bool writes(const Case& c, std::int32_t maker, double constant) {
  // What a clamp or a maximum puts there is a bound.
  if (!writes_marks(plain_name(*c.row(maker))) || chooses_by_value(*c.row(maker))) return false;
  const std::vector<Number> numbers = numbers_of(c, maker);
  if (std::any_of(numbers.begin(), numbers.end(), [&](const Number& n) { return near(n.value, constant); }))
    return true;
  // A tensor of one element is as good as a number there.
  if (!c.is_one_of(maker, {"masked_fill", "where"})) return false;
  for (const std::string_view argument : {"value", "self", "other"})
    if (const auto number = number_of(c, maker, argument); number && near(*number, constant)) return true;
  return false;
}

std::optional<MaskSource> source_of(const Case& c, std::int32_t op, std::string_view name, double constant,
                                    int picks) {
  const std::int32_t maker = computed_by(c, op, name);
  if (c.row(maker) && writes(c, maker, constant)) return MaskSource{maker};
  const bool selects = c.is_one_of(maker, {"masked_fill", "where"});
  if (!selects && is_mask_table(c, op, name)) return MaskSource{};
  if (!c.row(maker)) return std::nullopt;
  const bool adds = selects || c.is_one_of(maker, {"add", "sub"});
  if (!adds && (picks >= kMaxPicks || !chooses_by_value(*c.row(maker)))) return std::nullopt;
  for (const std::string_view side : {"self", "other"}) {
    if (is_constant(c, maker, side) || !holds(c, maker, side, constant)) continue;
    if (adds && is_mask_table(c, maker, side)) return MaskSource{};
    // Written over data, and a sum since then: rounding removed what was added.
    if (picks >= kMaxPicks) continue;
    if (auto found = source_of(c, maker, side, constant, picks + 1)) return found;
  }
  return std::nullopt;
}

/// The number of largest magnitude, if it may be a mask's: large and negative, or one that only people write.
std::optional<double> candidate(const at::Tensor& wide) {
  if (wide.numel() == 0 || !all_finite(wide)) return std::nullopt;
  const double low = wide.min().item<double>(), high = wide.max().item<double>();
  const double constant = std::abs(low) > std::abs(high) ? low : high;
  if (std::abs(constant) < kSmallestMask || (constant > 0 && !is_written_by_hand(constant)))
    return std::nullopt;
  return constant;
}

/// The op in `precision` with `put` where the argument at `position` holds `constant`.
std::optional<at::Tensor> with_instead(const Case& c, std::size_t position, double constant, double put,
                                       Precision precision) {
  std::vector<c10::IValue> arguments = c.values(c.op_index()).arguments;
  if (position >= arguments.size()) return std::nullopt;
  const at::Tensor x = tensor_of(arguments[position]);
  if (x.defined())
    arguments[position] = x.masked_fill(are_near(wide(x), constant).to(x.device()), put);
  else
    arguments[position] = put;
  return evaluate(*c.op(), arguments, precision);
}

}  // namespace

bool few_values(const at::Tensor& x) {
  if (x.numel() == 0) return false;
  const double low = x.min().item<double>(), high = x.max().item<double>();
  return at::logical_or(x == low, x == high).all().item<bool>();
}

bool is_written_by_hand(double value) {
  const double size = std::abs(value), decimal = std::log10(size);
  for (const double end : {65504.0, 57344.0, 448.0, 3.3895313892515355e38, 3.4028234663852886e38})
    if (size == end) return true;
  return size >= 1e4 && decimal == std::round(decimal);
}

std::optional<MaskSource> mask_source(const Case& c, std::int32_t op, std::string_view name,
                                      double constant) {
  return source_of(c, op, name, constant, 0);
}

std::optional<MaskedResult> masked_elements(const Case& c, const at::Tensor& out, const at::Tensor& bad) {
  const std::vector<c10::IValue>& given = c.values(c.op_index()).arguments;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const at::Tensor x = tensor_of(given[i]);
    if (!x.defined() || !x.is_floating_point()) continue;
    const auto constant = candidate(wide(x));
    const std::string name = argument_name(*c.op(), i);
    const auto source = constant ? mask_source(c, c.op_index(), name, *constant) : std::nullopt;
    if (!source) continue;
    const auto exact = with_instead(c, i, *constant, 0, Precision::fp64);
    const auto here = with_instead(c, i, *constant, 0, Precision::as_recorded);
    if (!exact || !here || exact->sizes() != out.sizes() || here->sizes() != out.sizes()) continue;
    const at::Tensor left = wide(*exact).masked_select(bad);
    if (!all_finite(left) || finite_amax(left) > *format_max(out)) continue;
    if (!all_finite(here->masked_select(bad))) continue;
    return MaskedResult{name, *constant, finite_amax(left), *source};
  }
  return std::nullopt;
}

double fitting_constant(const Case& c, const MaskedResult& mask, const at::Tensor& out) {
  const double most = *format_max(out) / 4;
  const auto position = argument_position(*c.op(), operand_name(*c.op(), mask.operand));
  double size = most;
  for (int tries = 0; position && tries < 8; ++tries) {
    const auto made =
        with_instead(c, *position, mask.constant, std::copysign(size, mask.constant), Precision::fp64);
    const double largest = made ? finite_amax(*made) : 0;
    if (largest <= most) break;
    size /= std::max(4.0, largest / most);
  }
  return std::copysign(size, mask.constant);
}

}  // namespace nanquest
