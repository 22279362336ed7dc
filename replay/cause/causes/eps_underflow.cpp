// EPS_UNDERFLOW: an epsilon should keep a denominator (or the argument of a logarithm) from being zero, and
// it is zero all the same. Three proofs. (1) The operand at the pole was made by adding an epsilon or
// clamping to it, and there the epsilon is zero, or the sum is not zero before rounding to the format. (2)
// The op takes an epsilon itself, and with one that the format can represent, and nothing else changed, it is
// finite. (3) A bound that keeps a value from a number, as clamp(max=1 - 1e-8), is that number in the format
// (replay/cause/lost_bound).
#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/lost_bound.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Larger ones are not a protection but part of the formula.
constexpr double kLargestEps = 1e-2;

/// An epsilon that the format of `like` can represent, also after squaring.
double eps_for(const at::Tensor& like) {
  return like.scalar_type() == at::kFloat || like.scalar_type() == at::kDouble ? 1e-6 : 1e-3;
}

/// The op that should have kept the operand from zero.
struct Protection {
  std::int32_t op = kNone;
  std::string_view argument;  ///< the epsilon's name in its schema
  double eps = 0;
  std::string format;  ///< the format it was lost in; "" if it is zero itself
};

/// True if `op` shows that `x` + eps (or max(x, eps)) is zero only because eps is, or because of rounding.
bool is_lost(const Case& c, std::int32_t op, Protection& found) {
  const OpValues& values = c.values(op);
  const at::Tensor guarded = operand(c, op, "self"), out = values.bad_output();
  if (!guarded.defined() || !out.defined() || !out.is_floating_point()) return false;
  const at::Tensor zero = wide(out) == 0;
  const auto x = broadcast(guarded, out.sizes());
  if (!x || count_true(zero) == 0) return false;
  if (found.eps == 0) return (*x >= 0).all().item<bool>();
  found.format = format_name(out);
  const auto exact = evaluate(*c.row(op), values.arguments, Precision::fp64);
  return exact && exact->sizes() == out.sizes() && count_true(at::logical_and(zero, wide(*exact) == 0)) == 0;
}

/// The name of the epsilon in an op that adds one or clamps to one; "" if it is no such op.
std::string_view eps_name(const OpRow& op) {
  const std::string name = plain_name(op);
  if (name == "add") return "other";
  if (name == "clamp" || name == "clamp_min") return "min";
  if (name == "maximum" || name == "max") return "other";
  return "";
}

/// True for ops for which a zero input gives a zero result, apart from those that only move it.
bool keeps_zero(const std::string& name) {
  return name == "sqrt" || name == "div" || name == "mul" || name == "abs";
}

/// Looks back from an operand for what protects it.
class ProtectionSearch {
 public:
  ProtectionSearch(const Case& c, std::string cast_to, bool root)
      : c_(c), cast_to_(std::move(cast_to)), root_(root) {}

  /// Behind the argument `name` of `op`; nothing if nothing protects it, or if that isn't lost.
  std::optional<Protection> behind(std::int32_t op, std::string_view name, int hops = 0) {
    const std::int32_t maker = computed_by(c_, op, name);
    if (!c_.row(maker) || hops > kMostHops) return std::nullopt;
    const std::string kind = plain_name(*c_.row(maker));
    const std::string_view eps = eps_name(*c_.row(maker));
    if (!eps.empty() && number_of(c_, maker, eps)) return lost(maker, eps);
    if (kind == "maximum") {  // zero only where both are
      auto one = behind(maker, "self", hops + 1);
      return one ? one : behind(maker, "other", hops + 1);
    }
    if (!keeps_zero(kind)) return std::nullopt;
    root_ = root_ || kind == "sqrt";
    // For x · 2 or x / 3 the tensor; for a product of two tensors it isn't known which one is zero.
    if ((kind == "mul" || kind == "div") && !number_of(c_, maker, "other")) return std::nullopt;
    return behind(maker, "self", hops + 1);
  }

 private:
  static constexpr int kMostHops = 5;

  std::optional<Protection> lost(std::int32_t op, std::string_view eps) const {
    const double value = *number_of(c_, op, eps);
    const bool update = c_.row(op)->phase == Phase::optimizer;
    // An optimizer may get its epsilon as a whole number: 0.
    if (std::abs(value) >= kLargestEps || !(update || is_real_number(c_, op, eps))) return std::nullopt;
    // Optimizers take an epsilon, and so does the root of a variance; elsewhere a zero protects nothing and
    // was not meant to. The same where only the root's derivative has a pole.
    const bool meant = update || (root_ && c_.row(c_.op_index())->phase != Phase::backward);
    if (value == 0 && !meant) return std::nullopt;
    Protection found{op, operand_name(*c_.row(op), eps), value, ""};
    if (is_lost(c_, op, found)) return found;
    // Not lost where it was added, but in a later cast.
    const at::Tensor out = c_.values(op).bad_output();
    if (value == 0 || !out.defined() || count_true(wide(out) == 0) > 0 || cast_to_.empty())
      return std::nullopt;
    found.format = cast_to_;
    return found;
  }

  const Case& c_;
  std::string cast_to_;
  bool root_;  ///< a root was taken on the way
};

std::optional<Protection> lost_protection(const Case& c, std::string_view name) {
  const std::int32_t op = c.op_index();
  return ProtectionSearch(c, format_name(tensor_of(argument(c, op, name))), c.is_one_of(op, {"rsqrt"}))
      .behind(op, name);
}

std::string lost_text(const Protection& p) {
  return p.format.empty() ? "its epsilon is 0"
                          : "the epsilon of " + number_text(p.eps) + " vanishes in " + p.format;
}

Finding finding(const Case& c, std::int64_t bad, const Protection& p, double better) {
  Finding f;
  f.precision = !p.format.empty();
  f.needs = FormatHalf::range;  // the smallest numbers of the format
  f.source = "the op that adds the epsilon, recomputed from its recorded inputs in fp64";
  f.evidence.push_back({"epsilon of " + c.op_text(p.op), number_text(p.eps)});
  if (!p.format.empty()) {
    f.evidence.push_back({"as " + p.format + " holds it beside the recorded values", "0"});
  }
  f.evidence.push_back(
      {"bad elements where the protected value is zero", std::to_string(bad) + " of " + std::to_string(bad)});
  f.explanation = c.op_text(c.op_index()) + " meets exactly 0 in " + count_text(bad, "element") + ", which " +
                  c.op_text(p.op) + " should have prevented: " + lost_text(p) + ".";
  f.advice = p.format.empty() ? "Give it an epsilon: 1e-6 in fp32, 1e-3 in fp16."
                              : "Use an epsilon that the format holds (fp16 ends at 6e-8, its products much "
                                "earlier: 1e-3 to 1e-4), or compute this part in fp32.";
  Change larger = edit_constant(c, p.op, p.argument, p.eps, better);
  larger.text = "the epsilon of " + c.op_text(p.op) + " set to " + number_text(better) + " instead of " +
                number_text(p.eps);
  f.wanted.push_back(std::move(larger));
  if (p.format.empty()) f.unmoved.push_back(op_in(c, c.op_index(), Precision::fp64));
  return f;
}

std::optional<Finding> at_a_pole(const Case& c) {
  const auto e = elements_of(c, c.op_index());
  if (!e || count_true(e->born) == 0) return std::nullopt;
  if (e->semantics->pole_kind != Pole::quotient && e->semantics->pole_kind != Pole::logarithm)
    return std::nullopt;
  if (count_true(at::logical_and(e->born, at::logical_not(e->at_pole()))) > 0) return std::nullopt;
  if (const auto lost = lost_protection(c, e->semantics->argument))
    return finding(c, count_true(e->born), *lost, eps_for(e->output));
  return finding_of_lost_bound(c, e->semantics->argument, count_true(e->born));
}

/// The outputs are finite wherever the recorded ones are not.
bool heals(const OpValues& values, const std::vector<at::Tensor>& outputs) {
  if (outputs.size() != values.outputs.size()) return false;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && !all_finite(outputs[i])) return false;
  return true;
}

std::optional<Finding> own_argument(const Case& c) {
  const OpValues& values = c.values(c.op_index());
  const at::Tensor out = values.bad_output();
  for (const char* name : {"eps", "epsilon"}) {
    const auto position = argument_position(*c.op(), name);
    if (!position || *position >= values.arguments.size() || !out.defined() || all_finite(out)) continue;
    for (const at::Tensor& t : tensors_in(values.arguments))
      if (!all_finite(t)) return std::nullopt;
    if (!values.arguments[*position].isScalar()) continue;
    Protection p{c.op_index(), name, values.arguments[*position].toScalar().toDouble(), ""};
    std::vector<c10::IValue> changed = values.arguments;
    changed[*position] = 1e-5;
    const auto outputs = evaluate_all(*c.op(), changed, Precision::as_recorded);
    if (p.eps > 1e-5 || !outputs || !heals(values, *outputs)) continue;
    if (p.eps != 0) {
      const auto exact = evaluate_all(*c.op(), values.arguments, Precision::fp64);
      if (!exact || !heals(values, *exact)) continue;
      p.format = format_name(out);
    }
    Finding f = finding(c, count_true(bad_mask(out)), p, 1e-5);
    f.explanation = c.op_text(c.op_index()) + " divides by a root or a norm that is 0 in " +
                    count_text(count_true(bad_mask(out)), "element") + ", and " + lost_text(p) +
                    ". The same call with 1e-5 is finite.";
    f.source = "the op on its recorded inputs, with another epsilon and nothing else changed";
    f.evidence[f.evidence.size() - 1] = {"bad elements that are finite with 1e-5", f.evidence.back().value};
    return f;
  }
  return std::nullopt;
}

std::optional<Finding> examine_eps_underflow(const Case& c, const Subject&) {
  if (!c.op()) return std::nullopt;
  auto f = at_a_pole(c);
  return f ? f : own_argument(c);
}

}  // namespace

NANQUEST_CAUSE(eps_underflow) = {
    .label = Label::eps_underflow,
    .origins = {Origin::op},
    .depth = Depth::operand,
    .examine = examine_eps_underflow,
};

}  // namespace nanquest
