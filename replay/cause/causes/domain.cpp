// DOMAIN: an argument outside the function's domain. Proof: by the table of semantics the function has no
// value at the recorded argument of every bad element, or the argument is at the boundary of its domain, and
// at least one is truly outside (the boundary alone is another cause's: log of 0, division by 0).
#include <ATen/ATen.h>

#include <cmath>

#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// The arguments there, in words: "-0.25", "-3 to -0.25".
std::string range_text(const at::Tensor& x, const at::Tensor& there) {
  const at::Tensor chosen = x.masked_select(there);
  const double low = chosen.min().item<double>(), high = chosen.max().item<double>();
  return low == high ? number_text(low) : number_text(low) + " to " + number_text(high);
}

/// The usual reason if the argument is outside the domain only by rounding, by the op that made it.
std::string usual_reason(const Case& c, const Elements& e, const at::Tensor& outside, std::int32_t maker) {
  const auto [low, high] = safe_interval(*e.semantics, e.output);
  const at::Tensor there = e.argument().masked_select(outside);
  const at::Tensor inside =
      at::clamp(there, std::isnan(low) ? std::optional<at::Scalar>() : std::optional<at::Scalar>(low),
                std::isnan(high) ? std::optional<at::Scalar>() : std::optional<at::Scalar>(high));
  if ((there - inside).abs().max().item<double>() > 1e-2) return "";
  const std::string name = c.row(maker) ? plain_name(*c.row(maker)) : "";
  if (name == "sub" || name == "rsub")
    return " A difference of two numbers that are nearly equal may round to the wrong side.";
  return " A result that ends at the domain's edge (a cosine, a probability) may round past it.";
}

Finding finding(const Case& c, const Elements& e, const at::Tensor& outside, std::int64_t bad) {
  const OpSemantics& s = *e.semantics;
  const std::int32_t maker = computed_by(c, c.op_index(), s.argument);
  const std::string range = range_text(e.argument(), outside);
  Finding f;
  f.precision = true;  // a rounding error past the boundary disappears in a wider format; a run decides
  f.needs = FormatHalf::precision;
  f.source = "the function's domain: " + std::string(s.op) + " is real for " + std::string(s.domain);
  f.evidence.push_back({"arguments outside the domain (" + std::string(s.domain) + ")",
                        std::to_string(count_true(outside)) + " of " + std::to_string(outside.numel())});
  f.evidence.push_back({"these arguments", range});
  f.evidence.push_back({"bad elements that stand there", std::to_string(bad) + " of " + std::to_string(bad)});
  f.explanation = c.op_text(c.op_index()) + " was given " + range + " in " +
                  count_text(count_true(outside), "element") + ", but has a value only for " +
                  std::string(s.domain) + "." + maker_text(c, "The argument", maker) +
                  usual_reason(c, e, outside, maker);
  f.advice =
      "Keep the argument inside (clamp it with a margin in which the derivative is finite too), or "
      "compute it so that it can't leave: softplus or exp for a variance, a true variance instead of "
      "E[x²] - E[x]².";
  if (const auto [low, high] = safe_interval(s, e.output); !(std::isnan(low) && std::isnan(high)))
    f.wanted.push_back(clamp_argument(c, c.op_index(), operand_name(*c.op(), s.argument), low, high));
  return f;
}

std::optional<Finding> examine_domain(const Case& c, const Subject&) {
  const auto e = elements_of(c, c.op_index());
  if (!e || count_true(e->born) == 0) return std::nullopt;
  const bool closed = e->semantics->pole_kind != Pole::boundary;
  const at::Tensor outside = closed ? e->outside() : at::logical_or(e->outside(), e->at_pole());
  const at::Tensor edge = e->at_pole();
  const at::Tensor unexplained = at::logical_and(e->born, at::logical_not(at::logical_or(outside, edge)));
  const at::Tensor there = at::logical_and(e->born, outside);
  if (count_true(there) == 0 || count_true(unexplained) > 0) return std::nullopt;
  return finding(c, *e, there, count_true(e->born));
}

}  // namespace

NANQUEST_CAUSE(domain) = {
    .label = Label::domain,
    .origins = {Origin::op},
    .ops = {{"log", "self"},
            {"log2", "self"},
            {"log10", "self"},
            {"log1p", "self"},
            {"xlogy", "other"},
            {"logit", "self"},
            {"special_xlog1py", "other"},
            {"sqrt", "self"},
            {"rsqrt", "self"},
            {"acos", "self"},
            {"asin", "self"},
            {"atanh", "self"},
            {"acosh", "self"},
            {"erfinv", "self"},
            {"special_ndtri", "self"},
            {"lgamma", "self"},
            {"digamma", "self"},
            {"pow", "self"}},
    .examine = examine_domain,
};

}  // namespace nanquest
