// SINGULAR_GRAD: forward finite, derivative infinite at this very point. Proof: the culprit works for the
// derivative of a forward op whose recorded outputs are finite and whose recorded input is exactly at the
// singular point wherever the derivative is bad. A gradient that arrives as exactly zero there was thrown
// away by the program: another cause.
#include <ATen/ATen.h>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

/// Where the derivative of the forward op is infinite, given what it read and gave; undefined if this op has
/// no such point.
struct Singular {
  at::Tensor mask;
  std::string point;  ///< in words
  Guard guard = Guard::zero_to_safe_root;
};

Singular singular_points(const Case& c, std::int32_t forward, const Subject& subject) {
  const std::string_view name = subject.op;
  const at::Tensor x = tensor_of(argument(c, forward, subject.argument));
  if (!x.defined() || !x.is_floating_point() || c.values(forward).outputs.empty()) return {};
  const at::Tensor w = wide(x);
  if (name == "sqrt") return {w == 0, "0, where its derivative 1/(2 sqrt(x)) is infinite"};
  if (name == "pow") {
    at::Tensor exponent = operand_of(argument(c, forward, "exponent"));
    if (!exponent.defined()) return {};
    exponent = wide(exponent);
    return {at::logical_and(w == 0, at::logical_and(exponent > 0, exponent < 1)),
            "0 with an exponent p below 1, where its derivative p x^(p-1) is infinite"};
  }
  if (name == "acos" || name == "asin")
    return {w.abs() == 1, "±1, where its derivative 1/sqrt(1 - x²) is infinite", Guard::unit_inwards};
  // A norm: PyTorch itself masks the 2-norm's derivative at 0; orders below 1 stay singular.
  const at::Tensor norm = wide(c.values(forward).outputs[0]);
  if (norm.numel() != 1 && norm.sizes() != w.sizes()) return {};
  return {at::logical_and(w == 0, (norm == 0).expand_as(w)), "0, where a norm has no derivative"};
}

/// The gradient that the node was given: the first argument, among the node's ops up to the culprit, that
/// backward made outside this node. Undefined if there is none.
at::Tensor incoming_gradient(const Case& c) {
  const std::int32_t culprit = c.op_index();
  std::int32_t first = culprit;
  while (first > 0 && c.doc().ops[first - 1].phase == Phase::backward &&
         c.doc().ops[first - 1].node == c.op()->node && c.doc().ops[first - 1].sequence == c.op()->sequence)
    --first;
  for (std::int32_t i = first; i <= culprit; ++i)
    for (const Case::TensorArgument& a : c.tensor_arguments(i)) {
      const std::int32_t maker = c.producer(a.tensor, i);
      if (maker == kNone || maker >= first || c.doc().ops[maker].phase != Phase::backward) continue;
      return tensor_of(c.values(i).arguments[static_cast<std::size_t>(a.position)]);
    }
  return {};
}

/// Every bad element was sent a gradient of exactly zero: where() or a factor of zero threw that branch
/// away.
bool thrown_away(const Case& c, const at::Tensor& bad) {
  const at::Tensor gradient = incoming_gradient(c);
  if (!gradient.defined() || !gradient.is_floating_point()) return false;
  const auto sent = broadcast(wide(gradient), bad.sizes());
  return sent && count_true(at::logical_and(bad, *sent != 0)) == 0;
}

Finding finding(const Case& c, std::int32_t forward, const Subject& subject, const Singular& singular,
                std::int64_t bad) {
  Finding f;
  f.source = "the derivative's own formula; the forward values were recorded finite";
  f.evidence.push_back({"inputs of " + c.op_text(forward) + " exactly at the singular point",
                        std::to_string(count_true(singular.mask))});
  f.evidence.push_back(
      {"bad derivatives that stand there", std::to_string(bad) + " of " + std::to_string(bad)});
  f.evidence.push_back({"non-finite values in that op's forward result", "0"});
  f.explanation = "Forward is finite everywhere, but " + c.op_text(forward) + " was evaluated at " +
                  singular.point + ": " + count_text(bad, "element") + " of its gradient not finite (" +
                  c.op()->node + ").";
  f.advice = singular.guard == Guard::unit_inwards
                 ? "Clamp the argument to [-1 + eps, 1 - eps] before acos or asin."
                 : "Add a small eps inside the root (sqrt(x + eps), (x + eps)^p), or use a norm whose "
                   "gradient is defined at 0.";
  f.wanted.push_back(guard_argument(c, forward, subject.argument, singular.guard));
  return f;
}

std::optional<Finding> examine(const Case& c, const Subject& subject) {
  const std::int32_t forward = c.forward_of(c.op_index());
  for (const at::Tensor& t : c.values(forward).outputs)
    if (!all_finite(t)) return std::nullopt;
  const Singular singular = singular_points(c, forward, subject);
  const OpValues& values = c.values(c.op_index());
  if (!singular.mask.defined() || values.outputs.empty()) return std::nullopt;
  const at::Tensor bad = bad_mask(values.bad_output());
  const auto points = broadcast(singular.mask, bad.sizes());
  if (!points || count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(*points))) > 0)
    return std::nullopt;
  if (thrown_away(c, bad)) return std::nullopt;
  return finding(c, forward, subject, singular, count_true(bad));
}

}  // namespace

NANQUEST_CAUSE(singular_grad) = {
    .label = Label::singular_grad,
    .origins = {Origin::op},
    .derivative_of = true,
    .ops = {{"sqrt", "self"},
            {"pow", "self"},
            {"acos", "self"},
            {"asin", "self"},
            {"linalg_vector_norm", "self"},
            {"norm", "self"}},
    .examine = examine,
};

}  // namespace nanquest
