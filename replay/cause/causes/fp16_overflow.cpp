// FP16_OVERFLOW: a value beyond the format's largest finite number. Proof: the very op, on its very inputs,
// one precision up, is finite and larger than that number exactly where the recorded output is not finite.
#include <ATen/ATen.h>

#include <cmath>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

Finding finding(const Case& c, const OpValues& values, const std::string& format, double limit, double amax,
                std::int64_t bad) {
  Finding f;
  f.precision = true;
  f.source =
      "IEEE 754 binary16: largest finite number 65504; the op recomputed from its recorded inputs in fp32";
  f.evidence.push_back(
      {c.op_text(c.op_index()) + " recomputed in fp32: amax", number_text(amax), number_text(limit)});
  f.evidence.push_back({"bad elements that are beyond " + format + " in fp32",
                        std::to_string(bad) + " of " + std::to_string(bad)});
  int i = 0;
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (t.is_floating_point() && i < 4)
      f.evidence.push_back({"amax of input " + std::to_string(i++) + " (" + format_name(t) + ")",
                            number_text(finite_amax(t)), number_text(limit)});
  f.explanation = c.op_text(c.op_index()) + " computes a value of " + number_text(amax) + ", but " + format +
                  " ends at " + number_text(limit) + ": " + count_text(bad, "element") +
                  " became infinite although every input was finite.";
  if (c.op()->phase == Phase::backward && c.doc().loss_scale > 1) {
    const double unscaled = amax / c.doc().loss_scale;
    f.evidence.push_back({"the same without the loss scale of " + number_text(c.doc().loss_scale),
                          number_text(unscaled), number_text(limit)});
    if (unscaled < limit) {
      f.explanation +=
          " Without the loss scale of " + number_text(c.doc().loss_scale) + " it would have fitted.";
      // As many halvings as the value is beyond the format, and some for the sums that follow it.
      const int needed = static_cast<int>(std::ceil(std::log2(amax / limit)));
      for (int more : {1, 5})
        if (auto smaller = smaller_loss_scale(c, needed + more)) f.wanted.push_back(std::move(*smaller));
    }
  }
  f.advice = f.wanted.empty() ? "" : "Let the loss scaler lower its scale (it overflowed, not the model). ";
  f.advice +=
      "Train in bf16 if the device has it; otherwise keep this op in fp32 (autocast disabled around it) or "
      "scale its inputs down (for attention: scale q before the product; for norms: sum squares in fp32).";
  return f;
}

std::optional<Finding> examine(const Case& c, const Subject&) {
  const OpRow* op = c.op();
  if (!op) return std::nullopt;
  const OpValues& values = c.values(c.op_index());
  if (values.outputs.empty() || !values.bad_output().defined()) return std::nullopt;
  const at::Tensor out = values.bad_output();
  const std::string format = format_name(out);
  if (format != "fp16" && format != "fp8_e4m3" && format != "fp8_e5m2") return std::nullopt;
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (!all_finite(t)) return std::nullopt;
  const auto exact = evaluate(*op, values.arguments, Precision::fp32);
  if (!exact || exact->sizes() != out.sizes() || !all_finite(*exact)) return std::nullopt;
  const double limit = *format_max(out);
  const at::Tensor bad = bad_mask(out);
  // Rounding to nearest: everything below half a step past the largest number still rounds down to it.
  const at::Tensor beyond = wide(*exact).abs() > limit * (1 - 1e-3);
  if (count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(beyond))) > 0)
    return std::nullopt;
  return finding(c, values, format, limit, finite_amax(*exact), count_true(bad));
}

}  // namespace

NANQUEST_CAUSE(fp16_overflow) = {
    .label = Label::fp16_overflow,
    .origins = {Origin::op},
    .yields_to = {Label::exp_overflow, Label::norm_overflow, Label::loss_scale, Label::empty_reduction,
                  Label::degenerate_linalg, Label::infeasible_target, Label::eps_underflow,
                  Label::logspace_inf_grad, Label::mask_overflow, Label::inf_logit, Label::zero_times_inf,
                  Label::domain},
    .examine = examine,
};

}  // namespace nanquest
