// SINGULAR_GRAD: forward finite, derivative infinite at this very point. Proof: the culprit is part of the
// derivative of a forward op, and that op, computed in fp64 at the recorded point and ever nearer to it, has
// no finite slope wherever the derivative is bad. A gradient of a branch that was not selected is another
// cause.
#include <ATen/ATen.h>

#include <algorithm>

#include "probe/trace/regions.h"
#include "replay/case/branch.h"
#include "replay/case/derivative.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr const char* kAddEps =
    "Add a small eps inside the root (sqrt(x + eps), (x + eps)^p), or use a norm whose gradient is defined "
    "at 0.";

/// Decompositions have singular points of their own: repeated eigenvalues, singular matrices.
bool is_decomposition(const std::string& name) {
  return (name.starts_with("linalg_") || name.starts_with("_linalg_")) && name != "linalg_vector_norm";
}

/// In fp64 from the same inputs the culprit is as bad: no range overflow of its format.
bool stays_bad(const Case& c, const at::Tensor& bad) {
  const auto exact = evaluate(*c.op(), c.values(c.op_index()).arguments, Precision::fp64);
  return !exact || exact->sizes() != bad.sizes() || covers(bad_mask(*exact), bad);
}

/// Rounding put the operand on the singular point: with the whole step in fp64 the derivative is finite,
/// although in fp64 it is as bad at the recorded point (stays_bad).
bool is_made_by_rounding(const Case& c) {
  const RunResult& run = c.whole(Precision::fp64);
  const auto op = static_cast<std::size_t>(c.op_index());
  return op < run.ops.size() && run.ops[op].ran && !run.ops[op].kept_format && !run.ops[op].written.empty() &&
         std::all_of(run.ops[op].written.begin(), run.ops[op].written.end(),
                     [](const StatsRow& s) { return s.non_finite() == 0; });
}

/// Moves what was at the singular point a little away from it; nothing if no guard is known for such a point.
std::optional<Change> guard_of(const Case& c, std::int32_t forward) {
  for (const Case::TensorArgument& a : c.tensor_arguments(forward)) {
    const auto position = static_cast<std::size_t>(a.position);
    const std::string name = argument_name(*c.row(forward), position);
    const at::Tensor t = tensor_of(argument(c, forward, name));
    if (!t.defined() || !t.is_floating_point() || t.unsafeGetTensorImpl()->is_wrapped_number()) continue;
    if (count_true(wide(t) == 0) > 0) return guard_argument(c, forward, name, Guard::zero_to_safe_root);
    if (count_true(wide(t).abs() == 1) > 0) return guard_argument(c, forward, name, Guard::unit_inwards);
  }
  return std::nullopt;
}

std::string point_of(const Case& c, std::int32_t forward) {
  for (const at::Tensor& t : tensors_in(c.values(forward).arguments)) {
    if (!t.is_floating_point() || t.unsafeGetTensorImpl()->is_wrapped_number()) continue;
    if (count_true(wide(t) == 0) > 0) return "0";
    if (count_true(wide(t).abs() == 1) > 0) return "±1";
  }
  return "a point";
}

Finding finding(const Case& c, std::int32_t forward, const Slopes& slopes, std::int64_t bad) {
  Finding f;
  const std::string point = point_of(c, forward);
  f.source =
      "the forward op computed in fp64 ever nearer to the recorded point; the forward values were recorded "
      "finite";
  f.evidence.push_back(
      {"elements of " + c.op_text(forward) + " without a finite slope",
       std::to_string(count_true(slopes.singular)) + " of " + std::to_string(slopes.singular.numel())});
  f.evidence.push_back({"slope there at a distance of " + number_text(slopes.distance_far) + " and of " +
                            number_text(slopes.distance_near),
                        number_text(slopes.far) + ", then " + number_text(slopes.near)});
  f.evidence.push_back(
      {"bad derivatives that stand there", std::to_string(bad) + " of " + std::to_string(bad)});
  f.evidence.push_back({"non-finite values in that op's forward result", "0"});
  f.explanation = "Forward is finite there, but " + c.op_text(forward) + " was evaluated at " + point +
                  ", where its derivative is infinite: " + count_text(bad, "element") +
                  " of its gradient not finite (" + c.op()->node + ").";
  f.advice = point == "±1" ? "Clamp the argument to [-1 + eps, 1 - eps] before acos or asin." : kAddEps;
  if (is_made_by_rounding(c)) {
    f.precision = true;
    f.explanation += " Rounding put it there: computed in fp64 the argument is near that point, not at it.";
  }
  if (auto change = guard_of(c, forward)) f.wanted.push_back(std::move(*change));
  return f;
}

/// For a forward op on lists: the call that the bad derivative belongs to. For any other op: its only call.
const Slopes* explaining(const std::vector<std::vector<Slopes>>& calls, const at::Tensor& bad,
                         const std::vector<std::int64_t>& reduced) {
  for (const std::vector<Slopes>& outputs : calls)
    for (const Slopes& s : outputs)
      if (s.singular.defined() && count_true(s.singular) > 0 && covers(s.singular, bad, reduced)) return &s;
  return nullptr;
}

/// For a derivative that torch.compile wrote out the forward op is unknown. It was finite, since this op is
/// the first to go bad; and a non-zero gradient over a zero denominator has no finite value.
std::optional<Finding> examine_compiled(const Case& c) {
  const auto e = over_zero(c);
  const auto unsent = e ? zero_over_zero(*e) : std::nullopt;
  if (!unsent) return std::nullopt;
  const std::int64_t bad = count_true(e->born), sent = bad - *unsent;
  // Only zero over zero: a branch that was not selected sends such gradients too.
  if (sent == 0) return std::nullopt;
  Finding f;
  f.source = "x / 0 is infinite (IEEE 754-2019, 7.3); the forward pass was finite there";
  f.evidence.push_back(
      {"bad elements that stand over a zero", std::to_string(bad) + " of " + std::to_string(bad)});
  f.evidence.push_back({"of these gradients that are not zero", std::to_string(sent)});
  f.explanation = "A derivative divides by zero: the forward pass is finite there, but was evaluated where " +
                  std::string("its derivative is infinite, in ") + count_text(bad, "element") +
                  " (a root, a norm or a power below 1 at 0, say).";
  f.advice = kAddEps;
  f.wanted.push_back(
      guard_argument(c, c.op_index(), operand_name(*c.op(), e->semantics->argument), Guard::zero_to_one));
  return f;
}

std::optional<Finding> examine_singular_grad(const Case& c, const Subject&) {
  if (!c.op()) return std::nullopt;
  if (c.op()->node == kCompiledDerivative) return examine_compiled(c);
  if (c.op()->phase != Phase::backward) return std::nullopt;
  const std::int32_t forward = c.forward_of(c.op_index());
  const OpRow* op = c.row(forward);
  const OpValues& values = c.values(c.op_index());
  if (!op || values.outputs.empty() || is_decomposition(plain_name(*op))) return std::nullopt;
  const at::Tensor bad = bad_mask(values.bad_output());
  if (count_true(bad) == 0 || !stays_bad(c, bad)) return std::nullopt;
  std::vector<std::vector<Slopes>> calls;
  for (const OpValues& call : c.calls(forward)) calls.push_back(slopes_of(*op, call.arguments));
  const std::vector<std::int64_t> reduced = reduced_dimensions(c, forward);
  const Slopes* slopes = explaining(calls, bad, reduced);
  if (!slopes) return std::nullopt;
  Finding f = finding(c, forward, *slopes, count_true(bad));
  if (sent_zero(c, c.op_index(), bad, reduced))
    f.explanation += " The gradient that was sent there is exactly zero, and zero times infinity is NaN.";
  return f;
}

}  // namespace

NANQUEST_CAUSE(singular_grad) = {
    .label = Label::singular_grad,
    .origins = {Origin::op},
    .derivative_of = true,
    .examine = examine_singular_grad,
};

}  // namespace nanquest
