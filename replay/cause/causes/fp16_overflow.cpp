// FP16_OVERFLOW: a value larger than the format's largest finite number, in any format. Proof: the same op,
// on the same inputs, is finite in a wider format, and there larger than that number exactly where the
// recorded output is not finite. If the result itself would fit (a norm's squares, a variance), the op in its
// own format is finite once its inputs are scaled down by a power of two, which rounds nothing.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "replay/case/scale.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// What overflowed: one output of the op, and the same output in a wider format.
struct Overflow {
  at::Tensor out, exact;
  Precision wider = Precision::fp32;
  bool inside = false;  ///< the result would fit: an intermediate value overflowed
};

/// Evidence and words about the loss scale, if it alone made the value too large.
void judge_loss_scale(const Case& c, double scale, double amax, double limit, Finding& f) {
  const double unscaled = amax / scale;
  f.evidence.push_back({"the same without the loss scale of " + number_text(scale), number_text(unscaled),
                        number_text(limit)});
  if (unscaled >= limit) return;
  f.explanation += " Without the loss scale of " + number_text(scale) + " it would have fitted.";
  // Enough halvings to bring the value into the format, and some more for the sums that follow.
  const int needed = static_cast<int>(std::ceil(std::log2(amax / limit)));
  for (int more : {1, 5})
    if (auto smaller = smaller_loss_scale(c, needed + more)) f.wanted.push_back(std::move(*smaller));
}

std::string advice_for(const std::string& format) {
  if (format == "fp16")
    return std::string(kKeepOpInFp32) +
           ", or scale its inputs down (for attention: "
           "scale q "
           "before the product; for norms: sum squares in fp32).";
  if (format.starts_with("fp8"))
    return "Scale the tensor before the cast so that its largest value fits (amax / " + format +
           "'s largest number), or keep this op in bf16.";
  return "Values of this size are rarely meant: look for what makes them grow (an unbounded product or "
         "power, a "
         "missing normalisation), scale the inputs down before this op, or compute it in a wider format.";
}

/// What the bad elements of this output became: sums that overflow on the way also end in Inf - Inf or 0 *
/// Inf.
std::string what_became_of(const at::Tensor& out, std::int64_t bad) {
  const std::int64_t nans = count_true(at::isnan(wide(out)));
  return nans == 0 ? "infinite" : nans == bad ? "NaN" : "infinite or NaN";
}

Finding finding(const Case& c, const Overflow& o) {
  const double limit = *format_max(o.out), amax = finite_amax(o.exact);
  const std::string format = format_name(o.out), wider = precision_text(o.wider);
  const std::int64_t bad = count_true(bad_mask(o.out));
  Finding f;
  f.precision = true;
  f.needs = FormatHalf::range;
  f.source = "largest finite number of " + format + ": " + number_text(limit) +
             "; the op recomputed from its recorded inputs in " + wider;
  f.evidence.push_back({c.op_text(c.op_index()) + " recomputed in " + wider + ": amax", number_text(amax),
                        number_text(limit)});
  f.evidence.push_back({o.inside ? "bad elements that are finite in " + format + " with inputs scaled down"
                                 : "bad elements that are beyond " + format + " in " + wider,
                        std::to_string(bad) + " of " + std::to_string(bad)});
  int i = 0;
  for (const at::Tensor& t : tensors_in(c.values(c.op_index()).arguments))
    if (t.is_floating_point() && i < 4)
      f.evidence.push_back({"amax of input " + std::to_string(i++) + " (" + format_name(t) + ")",
                            number_text(finite_amax(t)), number_text(limit)});
  f.explanation = c.op_text(c.op_index()) +
                  (o.inside ? " adds up values (squares, a sum) beyond " + format + " on the way to " +
                                  number_text(amax) + "; " + format + " ends at "
                            : " computes a value of " + number_text(amax) + ", but " + format + " ends at ") +
                  number_text(limit) + ": " + count_text(bad, "element") + " became " +
                  what_became_of(o.out, bad) + " although every input was finite.";
  if (c.op()->phase == Phase::backward && !o.inside)
    if (const double scale = step_loss_scale(c); scale > 1) judge_loss_scale(c, scale, amax, limit, f);
  f.advice = f.wanted.empty() ? "" : "Let the loss scaler lower its scale (it overflowed, not the model). ";
  f.advice += advice_for(format);
  if (format == "fp16") f.bf16_advice = "Train in bf16 if the device has it. Otherwise: ";
  return f;
}

/// The same arguments with every floating tensor scaled by 2^-`halvings`: nothing is rounded except what
/// underflows.
std::vector<c10::IValue> scaled_down(const std::vector<c10::IValue>& arguments, int halvings) {
  std::vector<c10::IValue> scaled;
  scaled.reserve(arguments.size());
  for (const c10::IValue& v : arguments)
    scaled.push_back(v.isTensor() && v.toTensor().defined() && v.toTensor().is_floating_point()
                         ? c10::IValue(v.toTensor() * std::exp2(-halvings))
                         : v);
  return scaled;
}

/// True if the op as recorded is finite on smaller inputs: the cause was their size.
bool fits_when_smaller(const Case& c, const OpValues& values) {
  double amax = 1;
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (t.is_floating_point()) amax = std::max(amax, finite_amax(t));
  const auto outputs = evaluate_all(*c.op(), scaled_down(values.arguments, static_cast<int>(std::log2(amax))),
                                    Precision::as_recorded);
  return amax > 16 && outputs && std::all_of(outputs->begin(), outputs->end(), all_finite);
}

/// The finding for output `k`; nothing if it does not explain all of it.
std::optional<Overflow> overflow_of(const Case& c, const OpValues& values, std::size_t k) {
  Overflow o{values.outputs[k], {}, Precision::fp32, false};
  if (o.out.scalar_type() == at::kDouble || !format_max(o.out))
    return std::nullopt;  // there is no wider format
  const bool reduced = o.out.scalar_type() != at::kFloat && o.out.scalar_type() != at::kBFloat16;
  o.wider = reduced ? Precision::fp32 : Precision::fp64;  // the ranges of bf16 and fp32 end at the same
                                                          // exponent
  const auto exact = evaluate_all(*c.op(), values.arguments, o.wider);
  if (!exact || exact->size() != values.outputs.size() || !(*exact)[k].defined()) return std::nullopt;
  o.exact = (*exact)[k];
  if (o.exact.sizes() != o.out.sizes() || !all_finite(o.exact)) return std::nullopt;
  const double limit = *format_max(o.out);
  // Rounding to nearest: everything below half a step past the largest number still rounds down to it.
  const at::Tensor beyond = wide(o.exact).abs() > limit * (1 - 1e-3);
  const at::Tensor unexplained = at::logical_and(bad_mask(o.out), at::logical_not(beyond));
  if (count_true(unexplained) == 0) return o;
  o.inside = true;
  return fits_when_smaller(c, values) ? std::optional(o) : std::nullopt;
}

std::optional<Finding> examine_fp16_overflow(const Case& c, const Subject&) {
  if (!c.op()) return std::nullopt;
  const OpValues& values = c.values(c.op_index());
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (!all_finite(t)) return std::nullopt;
  std::optional<Overflow> first;
  for (std::size_t k = 0; k < values.outputs.size(); ++k) {
    if (!values.outputs[k].defined() || all_finite(values.outputs[k])) continue;
    auto o = overflow_of(c, values, k);
    if (!o) return std::nullopt;
    if (!first) first = std::move(o);
  }
  return first ? std::optional(finding(c, *first)) : std::nullopt;
}

}  // namespace

NANQUEST_CAUSE(fp16_overflow) = {
    .label = Label::fp16_overflow,
    .origins = {Origin::op},
    .depth = Depth::size,
    .examine = examine_fp16_overflow,
};

}  // namespace nanquest
