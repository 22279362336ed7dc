#include "replay/case/semantics.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "replay/case/values.h"

namespace nanquest {
namespace {

using at::Tensor;
using Bounds = std::pair<double, double>;

constexpr double kOpen = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2E = 1.4426950408889634;

Tensor both(const Tensor& a, const Tensor& b) {
  return at::logical_and(a, b);
}
Tensor either(const Tensor& a, const Tensor& b) {
  return at::logical_or(a, b);
}
Tensor no(const Tensor& a) {
  return at::logical_not(a);
}
Tensor is_whole(const Tensor& x) {
  return x == at::floor(x);
}
Tensor log2_of(const Tensor& x) {
  return at::log2(at::abs(x));
}

// Domains.
Tensor negative(Operands x) {
  return x[0] < 0;
}
Tensor zero(Operands x) {
  return x[0] == 0;
}
Tensor below_minus_one(Operands x) {
  return x[0] < -1;
}
Tensor minus_one(Operands x) {
  return x[0] == -1;
}
Tensor below_one(Operands x) {
  return x[0] < 1;
}
Tensor beyond_one(Operands x) {
  return at::abs(x[0]) > 1;
}
Tensor at_one(Operands x) {
  return at::abs(x[0]) == 1;
}
Tensor negative_whole(Operands x) {
  return both(x[0] < 0, is_whole(x[0]));
}
Tensor whole_not_positive(Operands x) {
  return both(x[0] <= 0, is_whole(x[0]));
}
Tensor second_zero(Operands x) {
  return x[1] == 0;
}
Tensor third_zero(Operands x) {
  return x[2] == 0;
}

// x^p: a negative base has a real power where p is whole (an infinite p counts as whole).
Tensor pow_outside(Operands x) {
  return both(both(x[0] < 0, at::isfinite(x[0])), no(is_whole(x[1])));
}
Tensor pow_pole(Operands x) {
  return both(x[0] == 0, x[1] < 0);
}
Tensor pow_size(Operands x) {
  return at::where(x[0] == 0, at::zeros_like(x[0]), x[1] * log2_of(x[0]));
}
/// A constant power of up to 4 is a polynomial; growth there comes from the base.
Tensor pow_exponential(Operands x) {
  const bool one_power = x[1].numel() > 0 && x[1].min().item<double>() == x[1].max().item<double>();
  if (one_power) return at::abs(x[1]) > 4;
  return at::ones_like(x[0], at::kBool);
}

// xlogy(x, y) = x log y, and 0 wherever x is 0.
Tensor xlogy_outside(Operands x) {
  return both(x[0] != 0, x[1] < 0);
}
Tensor xlogy_pole(Operands x) {
  return both(x[0] != 0, x[1] == 0);
}
Tensor xlog1py_outside(Operands x) {
  return both(x[0] != 0, x[1] < -1);
}
Tensor xlog1py_pole(Operands x) {
  return both(x[0] != 0, x[1] == -1);
}

// logit(x, eps): with eps the argument is clamped to [eps, 1 - eps] first; at eps = 0 that leaves the poles.
Tensor logit_outside(Operands x) {
  return x[1].defined() ? at::zeros_like(x[0], at::kBool) : either(x[0]<0, x[0]> 1);
}
Tensor logit_pole(Operands x) {
  if (!x[1].defined()) return either(x[0] == 0, x[0] == 1);
  return both(x[1] == 0, either(x[0] <= 0, x[0] >= 1));
}
Tensor unit_outside(Operands x) {
  return either(x[0]<0, x[0]> 1);
}
Tensor unit_ends(Operands x) {
  return either(x[0] == 0, x[0] == 1);
}

// Sizes.
Tensor everywhere(Operands x) {
  return at::ones_like(x[0], at::kBool);
}
Tensor exp_size(Operands x) {
  return x[0] * kLog2E;
}
Tensor exp2_size(Operands x) {
  return x[0].clone();
}
/// cosh, sinh, I0, I1: kernels compute them from exp(|x|), and overflow with it.
Tensor both_sides_size(Operands x) {
  return at::abs(x[0]) * kLog2E;
}
Tensor quotient_size(Operands x) {
  return log2_of(x[0]) - log2_of(x[1]);
}
Tensor inverse_size(Operands x) {
  return -log2_of(x[0]);
}
Tensor product_size(Operands x) {
  return log2_of(x[0]) + log2_of(x[1]);
}

// Where value and derivative are moderate.
Bounds positive(double eps, double) {
  return {eps, kOpen};
}
/// Away from 1 by a margin for which the format, whose numbers there are `eps` apart, has half of its digits:
/// otherwise the derivative at the bound, a power of the margin, would have the rounding error of the bound.
double margin(double eps) {
  return std::sqrt(eps);
}
Bounds above_minus_one(double eps, double) {
  return {-1 + margin(eps), kOpen};
}
Bounds above_one(double eps, double) {
  return {1 + margin(eps), kOpen};
}
Bounds inside_one(double eps, double) {
  return {-1 + margin(eps), 1 - margin(eps)};
}
Bounds inside_unit(double eps, double) {
  return {margin(eps), 1 - margin(eps)};
}
Bounds half_bits(double, double bits) {
  return {kOpen, bits / 2 / kLog2E};
}
Bounds half_bits_of_two(double, double bits) {
  return {kOpen, bits / 2};
}
Bounds half_bits_both(double, double bits) {
  return {-bits / 2 / kLog2E, bits / 2 / kLog2E};
}

using V = std::vector<std::string_view>;

OpSemantics logarithm(std::string_view op, V operands = {"self"}) {
  return {.op = op,
          .operands = operands,
          .argument = operands.back(),
          .pole_kind = Pole::logarithm,
          .domain = "x > 0",
          .pole_text = "exactly 0",
          .outside = negative,
          .pole = zero,
          .safe = positive};
}

OpSemantics quotient(std::string_view op) {
  return {.op = op,
          .operands = {"self", "other"},
          .argument = "other",
          .pole_kind = Pole::quotient,
          .domain = "a denominator other than 0",
          .pole_text = "exactly 0",
          .pole = second_zero,
          .log2_size = quotient_size};
}

OpSemantics grows(std::string_view op, Tensor (*size)(Operands), Bounds (*safe)(double, double)) {
  return {.op = op,
          .operands = {"self"},
          .argument = "self",
          .log2_size = size,
          .exponential = everywhere,
          .safe = safe};
}

OpSemantics bounded(std::string_view op, std::string_view domain, Tensor (*outside)(Operands),
                    Bounds (*safe)(double, double)) {
  return {
      .op = op, .operands = {"self"}, .argument = "self", .domain = domain, .outside = outside, .safe = safe};
}

/// The same with poles at the ends of its domain.
OpSemantics open(OpSemantics s, std::string_view text, Tensor (*pole)(Operands)) {
  s.pole_kind = Pole::boundary;
  s.pole_text = text;
  s.pole = pole;
  return s;
}

std::vector<OpSemantics> make_table() {
  std::vector<OpSemantics> t;
  for (const std::string_view op : {"log", "log2", "log10"}) t.push_back(logarithm(op));
  OpSemantics s = logarithm("log1p");
  s.domain = "x > -1", s.pole_text = "exactly -1";
  s.outside = below_minus_one, s.pole = minus_one, s.safe = above_minus_one;
  t.push_back(s);
  s = logarithm("xlogy", {"self", "other"});
  s.outside = xlogy_outside, s.pole = xlogy_pole;
  t.push_back(s);
  s = logarithm("special_xlog1py", {"self", "other"});
  s.domain = "x > -1", s.pole_text = "exactly -1";
  s.outside = xlog1py_outside, s.pole = xlog1py_pole, s.safe = above_minus_one;
  t.push_back(s);
  s = logarithm("logit");
  s.operands = {"self", "eps"}, s.argument = "self";
  s.domain = "0 < x < 1", s.pole_text = "exactly 0 or 1";
  s.outside = logit_outside, s.pole = logit_pole, s.safe = inside_unit;
  t.push_back(s);

  t.push_back(bounded("sqrt", "x >= 0", negative, positive));
  s = bounded("rsqrt", "x > 0", negative, positive);
  s.pole_kind = Pole::quotient, s.pole_text = "exactly 0", s.pole = zero;
  t.push_back(s);
  t.push_back({.op = "pow",
               .operands = {"self", "exponent"},
               .argument = "self",
               .pole_kind = Pole::quotient,
               .domain = "x >= 0, or a whole exponent",
               .pole_text = "exactly 0 with a negative exponent",
               .outside = pow_outside,
               .pole = pow_pole,
               .log2_size = pow_size,
               .exponential = pow_exponential,
               .safe = positive});

  for (const std::string_view op : {"acos", "asin"})
    t.push_back(bounded(op, "-1 <= x <= 1", beyond_one, inside_one));
  t.push_back(bounded("acosh", "x >= 1", below_one, above_one));
  for (const std::string_view op : {"atanh", "erfinv"})
    t.push_back(open(bounded(op, "-1 < x < 1", beyond_one, inside_one), "exactly 1 or -1", at_one));
  t.push_back(
      open(bounded("special_ndtri", "0 < x < 1", unit_outside, inside_unit), "exactly 0 or 1", unit_ends));
  t.push_back(open(bounded("lgamma", "x other than 0, -1, -2, …", nullptr, positive),
                   "0 or a negative whole number", whole_not_positive));
  t.push_back(
      open(bounded("digamma", "x other than 0, -1, -2, …", negative_whole, positive), "exactly 0", zero));

  for (const std::string_view op : {"div", "true_divide", "divide"}) t.push_back(quotient(op));
  for (const std::string_view op : {"remainder", "fmod"}) {
    s = quotient(op);
    s.log2_size = nullptr;  // never larger than the divisor, or the input
    t.push_back(s);
  }
  t.push_back(quotient("floor_divide"));
  t.push_back({.op = "reciprocal",
               .operands = {"self"},
               .argument = "self",
               .pole_kind = Pole::quotient,
               .domain = "x other than 0",
               .pole_text = "exactly 0",
               .pole = zero,
               .log2_size = inverse_size});
  t.push_back({.op = "addcdiv",
               .operands = {"self", "tensor1", "tensor2"},
               .argument = "tensor2",
               .pole_kind = Pole::quotient,
               .domain = "a denominator other than 0",
               .pole_text = "exactly 0",
               .pole = third_zero});

  for (const std::string_view op : {"exp", "expm1"}) t.push_back(grows(op, exp_size, half_bits));
  t.push_back(grows("exp2", exp2_size, half_bits_of_two));
  for (const std::string_view op : {"cosh", "sinh"}) t.push_back(grows(op, both_sides_size, half_bits_both));
  for (const std::string_view op :
       {"i0", "special_i0", "special_i1", "special_modified_bessel_i0", "special_modified_bessel_i1"})
    t.push_back(grows(op, both_sides_size, half_bits_both));

  t.push_back({.op = "mul", .operands = {"self", "other"}, .argument = "self", .log2_size = product_size});
  std::sort(t.begin(), t.end(), [](const OpSemantics& a, const OpSemantics& b) { return a.op < b.op; });
  return t;
}

const std::vector<OpSemantics>& table() {
  static const std::vector<OpSemantics> all = make_table();
  return all;
}

}  // namespace

std::span<const OpSemantics> all_semantics() {
  return table();
}

const OpSemantics* semantics_of(std::string_view plain_name) {
  const auto found =
      std::find_if(table().begin(), table().end(), [&](const OpSemantics& s) { return s.op == plain_name; });
  return found == table().end() ? nullptr : &*found;
}

std::pair<double, double> safe_interval(const OpSemantics& semantics, const Tensor& like) {
  if (!semantics.safe) return {kOpen, kOpen};
  const double eps = like.scalar_type() == at::kDouble     ? 1e-12
                     : like.scalar_type() == at::kFloat    ? 2.5e-7
                     : like.scalar_type() == at::kBFloat16 ? 4e-3
                                                           : 1e-3;
  return semantics.safe(eps, std::log2(format_max(like).value_or(65504)));
}

}  // namespace nanquest
