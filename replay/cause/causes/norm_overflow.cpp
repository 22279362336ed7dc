// NORM_OVERFLOW: finite gradients whose norm overflows, so that clipping turns them into zeros or NaN. Proof:
// the culprit is a step of a norm (it squares, sums squares or takes the norm) of gradients that were
// recorded finite, it is finite in fp64 from the same inputs, and the root of its result is a single number.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "replay/case/origin.h"
#include "replay/case/scale.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

bool is_norm(const OpRow& op) {
  static const std::set<std::string> names = {"linalg_vector_norm", "norm", "linalg_norm", "frobenius_norm"};
  return names.count(plain_name(op)) > 0;
}

bool is_root(const Case& c, std::int32_t op) {
  const std::string name = plain_name(*c.row(op));
  if (name == "sqrt" || name == "rsqrt" || is_norm(*c.row(op))) return true;
  const auto position = argument_position(*c.row(op), "exponent");
  const auto exponent = name == "pow" && position ? number_at(c, op, *position) : std::nullopt;
  return exponent && (*exponent == 0.5 || *exponent == -0.5);
}

/// Squares, or adds up what was squared.
bool is_square_or_sum(const Case& c, std::int32_t op) {
  static const std::set<std::string> sums = {"sum",    "add",    "dot", "vdot",
                                             "square", "einsum", "mm",  "addcmul"};
  const std::string name = plain_name(*c.row(op));
  if (sums.count(name) || is_norm(*c.row(op))) return true;
  if (name == "pow") {
    const auto position = argument_position(*c.row(op), "exponent");
    const auto exponent = position ? number_at(c, op, *position) : std::nullopt;
    return exponent && *exponent >= 2;
  }
  const at::Tensor a = tensor_of(argument(c, op, "self")), b = tensor_of(argument(c, op, "other"));
  return name == "mul" && a.defined() && b.defined() && a.sizes() == b.sizes() && at::equal(a, b);
}

/// The norm that is taken of this norm and similar ones, with the ops between; empty if there is none.
std::vector<std::int32_t> norm_of_norms(const Case& c, std::int32_t norm) {
  std::vector<std::int32_t> way = {norm};
  static const std::set<std::string> between = {"stack", "cat", "_to_copy", "clone", "copy"};
  for (std::size_t i = 0; i < way.size() && way.size() < 16; ++i)
    for (const std::int32_t r : c.readers(way[i])) {
      if (is_norm(*c.row(r))) return {r};
      if (between.count(plain_name(*c.row(r)))) way.push_back(r);
    }
  return {};
}

/// From the culprit to the root: the ops that reduce it to one number. Empty if it doesn't become a norm.
std::vector<std::int32_t> way_to_root(const Case& c) {
  std::vector<std::int32_t> way = {c.op_index()};
  if (is_norm(*c.op())) {
    const std::vector<std::int32_t> total = norm_of_norms(c, c.op_index());
    way.insert(way.end(), total.begin(), total.end());
    return way;
  }
  static const std::set<std::string> reduce = {"sum", "stack", "cat", "dot", "vdot", "mm", "einsum"};
  std::set<std::int32_t> seen = {c.op_index()};
  for (std::size_t i = 0; i < way.size() && way.size() < 64; ++i)
    for (const std::int32_t r : c.readers(way[i])) {
      if (!c.row(r)->node.empty()) continue;
      const std::vector<at::Tensor>& made = c.values(r).outputs;
      const bool one = !made.empty() && made[0].defined() && made[0].numel() == 1;
      if (is_root(c, r) && one) {
        way.push_back(r);
        const bool sums = std::any_of(way.begin(), way.end(), [&](std::int32_t op) {
          return reduce.count(plain_name(*c.row(op))) > 0 || is_norm(*c.row(op));
        });
        return sums ? way : std::vector<std::int32_t>{};  // the second moment of a single number is no norm
      }
      static const std::set<std::string> between = {"sum",      "add",   "stack", "cat",
                                                    "_to_copy", "clone", "copy",  "sqrt"};
      if (between.count(plain_name(*c.row(r))) && seen.insert(r).second) way.push_back(r);
    }
  return {};
}

/// Other calls of the same kind that overflowed like the culprit, with the ops that follow them.
std::vector<std::int32_t> all_norm_ops(const Case& c, const std::vector<std::int32_t>& way) {
  std::set<std::int32_t> ops(way.begin(), way.end());
  for (const std::int32_t birth : c.whole(Precision::as_recorded).births)
    if (c.row(birth)->node.empty() && plain_name(*c.row(birth)) == plain_name(*c.op())) ops.insert(birth);
  return {ops.begin(), ops.end()};
}

Finding finding(const Case& c, const std::vector<std::int32_t>& way, double exact, double limit, double amax,
                const std::string& format) {
  Finding f;
  const std::string inner = is_norm(*c.op()) ? "sums their squares" : "works on their squares";
  f.source = "the op recomputed in fp64 from its recorded inputs";
  f.evidence.push_back({"largest finite gradient that it reads", number_text(amax), number_text(limit)});
  f.evidence.push_back({c.op_text(c.op_index()) + " recomputed in fp64", number_text(exact),
                        is_norm(*c.op()) ? "" : number_text(limit)});
  f.evidence.push_back({"square of the largest gradient", number_text(amax * amax), number_text(limit)});
  f.explanation = "Every gradient that " + c.op_text(c.op_index()) + " reads is finite (up to " +
                  number_text(amax) + "), but it " + inner + " in " + format + ", which ends at " +
                  number_text(limit) +
                  ": the norm of the gradients became infinite, and what is divided by it is zero or NaN.";
  f.advice =
      "Compute the norm in fp32 or fp64, or scale the gradients by their largest value first "
      "(amax * norm(g / amax)); unscale them before clipping.";
  f.needs = FormatHalf::range;
  const bool low = limit < 1e6;
  f.wanted.push_back(
      ops_in(c, "the norm of the gradients (" + c.op_text(way.front()) + " and what follows to its root)",
             all_norm_ops(c, way), low ? Precision::fp32 : Precision::fp64));
  return f;
}

std::optional<Finding> examine_norm_overflow(const Case& c, const Subject&) {
  const std::int32_t op = c.op_index();
  if (!c.op() || !c.op()->node.empty() || !is_square_or_sum(c, op)) return std::nullopt;
  const OpValues& values = c.values(op);
  if (values.outputs.empty() || !values.bad_output().defined() || !values.bad_output().is_floating_point())
    return std::nullopt;
  double amax = 0;
  for (const at::Tensor& t : tensors_in(values.arguments)) {
    if (!all_finite(t)) return std::nullopt;
    if (t.is_floating_point()) amax = std::max(amax, finite_amax(t));
  }
  const auto arguments = c.tensor_arguments(op);
  if (std::none_of(arguments.begin(), arguments.end(),
                   [&](const Case::TensorArgument& a) { return is_gradient(c, a.tensor, op); }))
    return std::nullopt;
  const auto exact = evaluate(*c.op(), values.arguments, Precision::fp64);
  if (!exact || !all_finite(*exact) || all_finite(values.bad_output())) return std::nullopt;
  const std::vector<std::int32_t> way = way_to_root(c);
  if (way.empty()) return std::nullopt;
  return finding(c, way, finite_amax(*exact), *format_max(values.bad_output()), amax,
                 format_name(values.bad_output()));
}

}  // namespace

NANQUEST_CAUSE(norm_overflow) = {
    .label = Label::norm_overflow,
    .origins = {Origin::op},
    .depth = Depth::purpose,
    .examine = examine_norm_overflow,
};

}  // namespace nanquest
