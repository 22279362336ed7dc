#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <set>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

bool one_of(const std::string& name, const std::set<std::string>& names) {
  return names.count(name) > 0;
}

std::int64_t infinite(const at::Tensor& t) {
  return t.is_floating_point() ? count_true(at::isinf(wide(t))) : 0;
}

/// All bad outputs are -Inf and stand where an input holds one and the same large negative constant.
bool is_mask_constant(const OpValues& values) {
  if (values.outputs.empty() || !values.outputs[0].is_floating_point()) return false;
  const at::Tensor out = wide(values.outputs[0]);
  const at::Tensor bad = bad_mask(out);
  if (count_true(bad) < 1 || count_true(bad) != count_true(out == -std::numeric_limits<double>::infinity()))
    return false;
  for (const at::Tensor& input : tensors_in(values.arguments)) {
    if (!input.is_floating_point()) continue;
    const auto same_shape = broadcast(wide(input), out.sizes());
    if (!same_shape) continue;
    const at::Tensor there = same_shape->masked_select(bad);
    const double low = there.min().item<double>(), high = there.max().item<double>();
    // A finfo.min, or a round "minus a lot" such as -1e9: people write these, training does not compute them.
    const double decimal = std::log10(std::abs(low));
    const bool written_by_hand =
        low == -65504 || low < -1e30 || (low <= -1e4 && decimal == std::round(decimal));
    if (low == high && written_by_hand) return true;
  }
  return false;
}

bool outside_domain(const std::string& name, const OpValues& values) {
  if (values.arguments.empty()) return false;
  const auto inputs = tensors_in(values.arguments);
  if (inputs.empty() || !inputs[0].is_floating_point()) return false;
  const at::Tensor x = wide(inputs[0]);
  if (one_of(name, {"log", "log2", "log10", "sqrt", "rsqrt"})) return count_true(x < 0) > 0;
  if (name == "log1p") return count_true(x < -1) > 0;
  if (one_of(name, {"acos", "asin", "atanh"})) return count_true(x.abs() > 1) > 0;
  if (name == "acosh") return count_true(x < 1) > 0;
  if (name == "pow") return count_true(x < 0) > 0;
  return false;
}

std::string by_values(const std::string& name, const OpValues& values) {
  std::int64_t infinities = 0;
  bool zeros = false;
  for (const at::Tensor& t : tensors_in(values.arguments)) {
    infinities += infinite(t);
    zeros = zeros || (t.is_floating_point() && count_true(t == 0) > 0);
  }
  if (is_mask_constant(values)) return "MASK_OVERFLOW";
  if (infinities > 0 &&
      one_of(name, {"_softmax", "_log_softmax", "binary_cross_entropy_with_logits", "log_softmax"}))
    return "INF_LOGIT";
  if (infinities > 0 && zeros && one_of(name, {"mul", "mm", "bmm", "addmm", "baddbmm", "dot", "mv"}))
    return "ZERO_TIMES_INF";
  if (outside_domain(name, values)) return "DOMAIN";
  return "";
}

/// The denominator was made by adding (or clamping to) an epsilon, and is zero all the same.
bool lost_epsilon(const Case& c, const std::string& name) {
  if (!one_of(name, {"div", "rsqrt", "reciprocal", "true_divide", "addcdiv"})) return false;
  const auto arguments = c.tensor_arguments(c.op_index());
  const std::size_t which = one_of(name, {"rsqrt", "reciprocal"}) ? 0 : name == "addcdiv" ? 2 : 1;
  if (which >= arguments.size()) return name == "addcdiv";
  std::int32_t maker = c.producer(arguments[which].tensor, c.op_index());
  if (const OpRow* root = c.row(maker); root && plain_name(*root) == "sqrt")
    maker = c.producer(c.tensor_arguments(maker).front().tensor, maker);
  const OpRow* op = c.row(maker);
  if (!op) return false;
  if (one_of(plain_name(*op), {"clamp", "clamp_min", "maximum"})) return true;
  const OpValues& made = c.values(maker);
  if (plain_name(*op) != "add" || made.arguments.size() < 2) return false;
  const c10::IValue& eps = made.arguments[1];
  const double value = eps.isScalar()                                  ? eps.toScalar().toDouble()
                       : eps.isTensor() && eps.toTensor().numel() == 1 ? wide(eps.toTensor()).item<double>()
                                                                       : 1;
  return std::abs(value) < 1e-2;
}

}  // namespace

std::string neighbour_label(const Case& c) {
  const OpRow* op = c.op();
  if (!op) return "";
  const std::string name = plain_name(*op);
  if (one_of(name, {"exp", "expm1", "exp2", "cosh", "sinh"})) return "EXP_OVERFLOW";
  if (op->phase == Phase::optimizer && (name.find("norm") != std::string::npos)) return "NORM_OVERFLOW";
  if (op->phase == Phase::optimizer && name.find("_amp_") != std::string::npos) return "LOSS_SCALE";
  if (one_of(name, {"mean", "std", "var", "max", "min", "amax", "amin", "nll_loss_forward", "std_mean",
                    "var_mean"})) {
    const auto inputs = tensors_in(c.values(c.op_index()).arguments);
    if (inputs.empty() || inputs[0].numel() <= 1 || name == "nll_loss_forward") return "EMPTY_REDUCTION";
  }
  if (name.rfind("linalg_", 0) == 0 && name != "linalg_vector_norm") return "DEGENERATE_LINALG";
  if (name == "_ctc_loss") return "INFEASIBLE_TARGET";
  if (lost_epsilon(c, name)) return "EPS_UNDERFLOW";
  if (const OpRow* f = c.row(c.forward_of(c.op_index()));
      f && one_of(plain_name(*f), {"logsumexp", "logaddexp", "_logcumsumexp"}))
    return "LOGSPACE_INF_GRAD";
  return by_values(name, c.values(c.op_index()));
}

}  // namespace nanquest
