// DIV_ZERO: division by an exact zero that is data, a count or a variance. Proof: numerator finite
// everywhere, and the recorded denominator is exactly zero wherever the output is bad. A lost epsilon is
// another cause, and so is a division inside a derivative.
#include <ATen/ATen.h>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

/// Positions of numerator (-1: it is one) and denominator.
struct Division {
  int numerator, denominator;
};

std::optional<Division> division(const std::string& name) {
  if (name == "div" || name == "true_divide" || name == "divide" || name == "remainder" || name == "fmod" ||
      name == "floor_divide")
    return Division{0, 1};
  if (name == "reciprocal" || name == "rsqrt") return Division{-1, 0};
  return std::nullopt;
}

at::Tensor argument(const OpValues& values, int position) {
  if (position < 0 || static_cast<std::size_t>(position) >= values.arguments.size()) return {};
  const c10::IValue& v = values.arguments[static_cast<std::size_t>(position)];
  if (v.isTensor()) return v.toTensor();
  if (v.isScalar()) return at::scalar_tensor(v.toScalar(), at::TensorOptions(at::kDouble));
  return {};
}

class DivZero : public Cause {
 public:
  std::string_view label() const override { return "DIV_ZERO"; }

  std::optional<Finding> examine(const Case& c) const override {
    const OpRow* op = c.op();
    if (!op || c.culprit().origin != "op" || op->phase == Phase::backward) return std::nullopt;
    const auto parts = division(plain_name(*op));
    if (!parts || !neighbour_label(c).empty()) return std::nullopt;
    const OpValues& values = c.values(c.op_index());
    if (values.outputs.empty()) return std::nullopt;
    const at::Tensor denominator = argument(values, parts->denominator);
    const at::Tensor numerator = argument(values, parts->numerator);
    if (!denominator.defined() || !all_finite(denominator)) return std::nullopt;
    if (parts->numerator >= 0 && (!numerator.defined() || !all_finite(numerator))) return std::nullopt;
    const auto zeros = broadcast(wide(denominator) == 0, values.outputs[0].sizes());
    const at::Tensor bad = bad_mask(values.outputs[0]);
    if (!zeros || count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(*zeros))) > 0)
      return std::nullopt;
    return finding(c, *parts, denominator, numerator, *zeros, count_true(bad));
  }

 private:
  static Finding finding(const Case& c, Division parts, const at::Tensor& denominator,
                         const at::Tensor& numerator, const at::Tensor& zeros, std::int64_t bad) {
    Finding f;
    f.label = "DIV_ZERO";
    f.source = "x / 0 is infinite and 0 / 0 is NaN (IEEE 754-2019, 7.2 and 7.3)";
    const std::int64_t n = count_true(wide(denominator) == 0);
    f.evidence.push_back({"denominators exactly zero",
                          std::to_string(n) + " of " + std::to_string(denominator.numel()),
                          "0",
                          {}});
    f.evidence.push_back(
        {"bad elements that stand over a zero", std::to_string(bad) + " of " + std::to_string(bad), "", {}});
    std::string what;
    if (numerator.defined()) {
      const auto over = broadcast(wide(numerator) == 0, zeros.sizes());
      const std::int64_t both = over ? count_true(at::logical_and(*over, zeros)) : 0;
      f.evidence.push_back({"of these 0 / 0", std::to_string(both), "", {}});
      what = both > 0 ? " (0 / 0 gives NaN)" : " (a finite number over zero is infinite)";
    }
    std::string maker_text;
    for (const Case::TensorArgument& a : c.tensor_arguments(c.op_index()))
      if (a.position == parts.denominator)
        if (const std::int32_t maker = c.producer(a.tensor, c.op_index()); maker != kNone)
          maker_text =
              " The denominator was made by " + c.op_text(maker) + " (op " + std::to_string(maker) + ").";
    f.explanation = c.op_text(c.op_index()) + " divides by exactly zero in " + count_text(bad, "element") +
                    what + "." + maker_text;
    f.advice =
        "For a count use max(count, 1) and skip samples with nothing to count; for a variance or a norm add "
        "an epsilon "
        "that the format can hold.";
    f.wanted.push_back(guard_argument(c, c.op_index(), parts.denominator, Guard::zero_to_one));
    return f;
  }
};

}  // namespace

const Cause& div_zero() {
  static const DivZero cause;
  return cause;
}

}  // namespace nanquest
