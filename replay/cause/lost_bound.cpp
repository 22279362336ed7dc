#include "replay/cause/lost_bound.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr int kMostHops = 8;
/// A bound farther from a whole number is not one less a small epsilon.
constexpr double kFarthest = 1e-2;

/// A bound that its format does not hold, as p.clamp(max=1 - 1e-8) in fp32.
struct LostBound {
  std::int32_t op = kNone;    ///< the clamp
  std::string_view argument;  ///< the bound's name in its schema
  double bound = 0;           ///< as the program wrote it
  double held = 0;            ///< as the format holds it: a whole number
  double better = 0;          ///< a bound that the format tells from `held`
  std::string format;
};

/// `value` as a tensor of this format holds it.
double as_held(double value, const at::Tensor& like) {
  return at::full({}, value, at::kDouble).to(like.scalar_type()).to(at::kDouble).item<double>();
}

/// A bound on the side of `bound` that the format tells from `whole`, with two of its steps in between.
double told_apart(double bound, double whole, const at::Tensor& like) {
  double gap = std::abs(whole - bound);
  while (gap < 0.25 && as_held(whole + std::copysign(gap, bound - whole) / 2, like) == whole) gap *= 2;
  return whole + std::copysign(gap, bound - whole);
}

std::optional<LostBound> bound_of(const Case& c, std::int32_t op) {
  for (const std::string_view name : {"max", "min"}) {
    const auto bound = number_of(c, op, name);
    const at::Tensor out = c.values(op).bad_output();
    if (!bound || !out.defined() || !out.is_floating_point()) continue;
    const double whole = std::round(*bound), held = as_held(*bound, out);
    if (*bound == whole || held != whole || whole == 0 || std::abs(*bound - whole) > kFarthest ||
        count_true(wide(out) == whole) == 0)
      continue;
    return LostBound{op, name, *bound, whole, told_apart(*bound, whole, out), format_name(out)};
  }
  return std::nullopt;
}

/// What is looked back over, and the bounds that were found.
struct Search {
  const Case& c;
  std::set<std::pair<std::int32_t, bool>> seen = {};
  std::vector<LostBound> found = {};

  void behind(std::int32_t op, std::string_view name, bool subtracted, int hops) {
    const std::int32_t maker = computed_by(c, op, name);
    if (!c.row(maker) || hops > kMostHops || !seen.insert({maker, subtracted}).second) return;
    if (c.is_one_of(maker, {"clamp", "clamp_max", "clamp_min"})) {
      if (auto bound = subtracted ? bound_of(c, maker) : std::nullopt) found.push_back(*std::move(bound));
      return;
    }
    const bool difference = c.is_one_of(maker, {"sub", "rsub"});
    if (!difference && !c.is_one_of(maker, {"add", "mul", "neg", "pow", "sqrt", "div"})) return;
    for (const std::string_view side : {"self", "other"})
      if (!is_constant(c, maker, side)) behind(maker, side, subtracted || difference, hops + 1);
  }
};

Finding finding_of(const Case& c, std::int64_t bad, const std::vector<LostBound>& all) {
  const LostBound& lost = all.front();
  const std::string held = number_text(lost.held);
  const auto text = [&](double bound) {  // "1 - 1e-08": five digits would say 1
    return held + (bound < lost.held ? " - " : " + ") + number_text(std::abs(lost.held - bound));
  };
  Finding f;
  f.precision = true;
  f.needs = FormatHalf::precision;
  f.source = "the bound in the format of what it bounds, and the step in fp64";
  f.evidence.push_back({"bound of " + c.op_text(lost.op), text(lost.bound)});
  f.evidence.push_back({"as " + lost.format + " holds it", held});
  f.evidence.push_back({"zeros there in fp64", "0"});
  f.explanation = c.op_text(c.op_index()) + " meets exactly 0 in " + count_text(bad, "element") + ": " +
                  c.op_text(lost.op) + " should have kept away from " + held +
                  " what is subtracted, but its bound of " + text(lost.bound) + " is " + held + " in " +
                  lost.format + ".";
  f.advice = "Use a bound that the format tells from " + held +
             " (1e-2 away in bf16, 1e-3 in fp16, 1e-6 in fp32), or compute this part in a wider format.";
  Change nearer = edit_constant(c, lost.op, lost.argument, lost.bound, lost.better);
  for (std::size_t i = 1; i < all.size(); ++i)  // both factors of a product may be at their bound
    nearer = together(std::move(nearer),
                      edit_constant(c, all[i].op, all[i].argument, all[i].bound, all[i].better));
  nearer.text = "the bound of " + c.op_text(lost.op) + " set to " + text(lost.better) + " instead of " +
                text(lost.bound);
  if (all.size() > 1) nearer.text += ", in each of " + std::to_string(all.size()) + " calls";
  f.wanted.push_back(std::move(nearer));
  return f;
}

}  // namespace

bool has_no_zeros_in_fp64(const Case& c, std::int32_t maker) {
  const RunResult& run = c.whole(Precision::fp64);
  if (maker == kNone || static_cast<std::size_t>(maker) >= run.ops.size()) return false;
  const std::vector<StatsRow>& written = run.ops[static_cast<std::size_t>(maker)].written;
  return !written.empty() &&
         std::all_of(written.begin(), written.end(), [](const StatsRow& s) { return s.zero == 0; });
}

std::optional<Finding> finding_of_lost_bound(const Case& c, std::string_view name, std::int64_t bad) {
  Search search{c};
  search.behind(c.op_index(), name, false, 0);
  if (search.found.empty() || !has_no_zeros_in_fp64(c, maker_of(c, c.op_index(), name))) return std::nullopt;
  return finding_of(c, bad, search.found);
}

}  // namespace nanquest
