// EXP_OVERFLOW: an exponential function of too large an argument. Proof: at every bad element the op grows
// exponentially in a recorded, finite argument, and log2 of its result, computed without overflow, is larger
// than that of the format's largest number. Of a matrix: the matrix is finite, and its norm is larger than
// the logarithm of that number, as it has to be (no entry of exp(A) is beyond e^norm(A): Golub and Van Loan,
// Matrix Computations, 9.3).
#include <ATen/ATen.h>

#include <cmath>

#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr double kOpen = std::numeric_limits<double>::quiet_NaN();

/// 2^`log2_size` in words, also if no format can represent it.
std::string size_text(double log2_size) {
  if (log2_size < 1000) return number_text(std::exp2(log2_size));
  return "10^" + number_text(std::round(log2_size * std::log10(2)));
}

/// The change that limits the operand that grows.
Change bound(const Case& c, const Elements& e) {
  const double bits = std::log2(*format_max(e.output));
  if (e.semantics->op != "pow") {
    const auto [low, high] = safe_interval(*e.semantics, e.output);
    return clamp_argument(c, c.op_index(), "self", low, high);
  }
  if (const auto power = number_of(c, c.op_index(), "exponent")) {
    const double largest = std::exp2(bits / 2 / std::abs(*power));
    return clamp_argument(c, c.op_index(), "self", *power < 0 ? 1 / largest : -largest,
                          *power < 0 ? kOpen : largest);
  }
  const double base = std::max(2.0, finite_amax(e.operands[0]));
  const double largest = bits / 2 / std::log2(base);
  return clamp_argument(c, c.op_index(), "exponent", -largest, largest);
}

Finding finding(const Case& c, const Elements& e) {
  const double limit = *format_max(e.output);
  const std::string format = format_name(e.output), name(e.semantics->op);
  const at::Tensor size = e.semantics->log2_size(e.operands).masked_select(e.born);
  const at::Tensor there = e.argument().masked_select(e.born);
  const std::string result = size_text(size.max().item<double>());
  const double argument = there.index({there.abs().argmax()}).item<double>();
  Finding f;
  f.precision = true;  // a wider format can represent it, or delays it; a run decides
  f.needs = FormatHalf::range;
  f.source = name + " of the recorded argument, as a power of two that no format limits";
  f.evidence.push_back({"largest result of " + c.op_text(c.op_index()), result, number_text(limit)});
  f.evidence.push_back({"its argument", number_text(argument)});
  f.evidence.push_back({"bad elements that are beyond " + format,
                        std::to_string(count_true(e.born)) + " of " + std::to_string(count_true(e.born))});
  f.explanation = c.op_text(c.op_index()) + " of " + number_text(argument) + " is " + result + ", but " +
                  format + " ends at " + number_text(limit) + ": " +
                  count_text(count_true(e.born), "element") + " became infinite." +
                  maker_text(c, "The argument", computed_by(c, c.op_index(), e.semantics->argument));
  f.advice =
      "Bound the argument before the exponential (clamp it, or subtract the largest one as softmax and "
      "logsumexp do), or use a form that needs no exponential: log-space, softplus, expm1 of a "
      "difference.";
  f.wanted.push_back(bound(c, e));
  return f;
}

std::optional<Finding> of_matrix(const Case& c, std::string_view argument_name) {
  const OpValues& values = c.values(c.op_index());
  const at::Tensor out = values.bad_output(), matrix = tensor_of(argument(c, c.op_index(), argument_name));
  if (!out.defined() || !matrix.defined() || matrix.sizes() != out.sizes() || !format_max(out) ||
      !all_finite(matrix) || all_finite(out))
    return std::nullopt;
  const double limit = *format_max(out), largest = std::log(limit);
  // The largest sum of a column: an entry of the result is at most e to that.
  const at::Tensor norm = wide(matrix).abs().sum(-2).amax(-1);
  const at::Tensor bad = bad_mask(out).flatten(-2).any(-1);
  if (count_true(at::logical_and(bad, norm <= largest)) > 0) return std::nullopt;
  const double size = norm.masked_select(bad).max().item<double>();
  const std::string op = c.op_text(c.op_index()), format = format_name(out);
  Finding f;
  f.precision = true;
  f.needs = FormatHalf::range;
  f.source = "the norm of the recorded matrix: no entry of its exponential is larger than e to that";
  f.evidence.push_back({"norm of the matrix", number_text(size), number_text(largest)});
  f.evidence.push_back(
      {"matrices with a bad result", std::to_string(count_true(bad)) + " of " + std::to_string(bad.numel())});
  f.explanation = op + " of a matrix with the norm " + number_text(size) + " is beyond " + format +
                  ", which ends at e^" + number_text(largest) + ": " +
                  count_text(count_true(bad_mask(out)), "element") + " became non-finite." +
                  maker_text(c, "The matrix", computed_by(c, c.op_index(), argument_name));
  f.advice =
      "Bound the matrix before its exponential (a rate or a time that is too large, or of the wrong unit), "
      "or "
      "keep its eigenvalues below zero.";
  const double bound = largest / 2 / static_cast<double>(matrix.size(-1));
  f.wanted.push_back(clamp_argument(c, c.op_index(), argument_name, -bound, bound));
  return f;
}

std::optional<Finding> examine_exp_overflow(const Case& c, const Subject& function) {
  if (function.op.ends_with("matrix_exp")) return of_matrix(c, function.argument);
  const auto e = elements_of(c, c.op_index());
  if (!e || count_true(e->born) == 0) return std::nullopt;
  const at::Tensor explained = at::logical_and(e->exponential(), e->beyond());
  if (count_true(at::logical_and(e->born, at::logical_not(explained))) > 0) return std::nullopt;
  return finding(c, *e);
}

}  // namespace

NANQUEST_CAUSE(exp_overflow) = {
    .label = Label::exp_overflow,
    .origins = {Origin::op},
    .ops = {{"exp", "self"},
            {"expm1", "self"},
            {"exp2", "self"},
            {"cosh", "self"},
            {"sinh", "self"},
            {"special_i0", "self"},
            {"i0", "self"},
            {"special_i1", "self"},
            {"special_modified_bessel_i0", "self"},
            {"special_modified_bessel_i1", "self"},
            {"linalg_matrix_exp", "self"},
            {"pow", ""}},
    .examine = examine_exp_overflow,
};

}  // namespace nanquest
