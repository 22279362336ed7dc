#include "replay/verdict/sentences.h"

#include <algorithm>
#include <cstdio>

namespace nanquest {
namespace {

std::string listed(const std::vector<Blamed>& all) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < kNamed; ++i) text += (i ? ", " : "") + blamed_text(all[i]);
  if (all.size() > kNamed) text += " and " + std::to_string(all.size() - kNamed) + " more";
  return text;
}

/// "0.00035".
std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

std::string effect_of(std::optional<PrecisionVerdict> precision) {
  if (!precision) return "not known";
  switch (*precision) {
    case PrecisionVerdict::curable:
      return "more precision cures it";
    case PrecisionVerdict::delayed:
      return "more precision only delays it: the values keep growing";
    case PrecisionVerdict::structural:
      return "more precision does not help, the operation itself fails";
    case PrecisionVerdict::not_a_precision_matter:
      return "has nothing to do with it";
  }
  return "";
}

}  // namespace

std::string op_words(std::string_view op, std::string_view module, std::int64_t number) {
  std::string text(op);
  if (!module.empty()) text.append(" in ").append(module);
  return number < 0 ? text : text + " (op " + std::to_string(number) + ")";
}

std::string blamed_text(const Blamed& b) {
  const std::string text = op_words(b.op.empty() ? "no op" : b.op, b.module, b.index);
  return b.tensor.empty() ? text : b.tensor + ", first read by " + text;
}

std::string op_text(const RankCulprit& culprit) {
  return op_words(culprit.op, culprit.module) + (culprit.pass.empty() ? "" : ", " + culprit.pass) +
         (culprit.index < 0 ? "" : ", op " + std::to_string(culprit.index));
}

bool arrived(const Verdict& v) {
  return v.ranks && !v.ranks->arrived_by.empty() && v.origin == Origin::op;
}

const RankCulprit* other_rank(const Verdict& v) {
  return v.ranks && v.ranks->first && v.ranks->first->rank != v.rank ? &*v.ranks->first : nullptr;
}

std::string blame_text(const BlameInfo& b) {
  if (!b.tried) return "";
  std::string text;
  if (b.set.empty())
    text = "not shown: replacing the bad values of no suspect made the step finite";
  else if (b.set.size() == 1)
    text = "replacing only this op's bad values makes the step finite";
  else
    text = std::to_string(b.set.size()) + " places together: " + listed(b.set) +
           "; the step is finite only if the bad values of all of them are replaced";
  if (!b.set.empty() && !b.assumed.empty()) text += " (if the other ranks gave nothing bad)";
  if (!b.intended.empty()) text += "; intended: " + listed(b.intended);
  return text;
}

std::string claim_text(const Claim& c) {
  std::string text(word(c.cause));
  if (!c.facts_for.empty()) text += ": " + c.facts_for.front();
  for (std::size_t i = 0; i < c.facts_against.size(); ++i)
    text += (i ? "; " : "; against it: ") + c.facts_against[i];
  return text;
}

std::string reproduction_text(const Reproduction& r) {
  const std::string basis = r.basis == Basis::survivors ? "tensors alive at the gate" : "written outputs";
  const std::string all = std::to_string(r.outputs_compared) + " " + basis;
  const auto bound = [&] { return "within " + short_text(r.elsewhere->bound) + " of the recording"; };
  std::string text;
  switch (r.agreement()) {
    case Agreement::bit_for_bit:
      text = "the step came back bit for bit (" + all + " compared)";
      break;
    case Agreement::within_bounds:
      text = "the step came back within bounds: all " + all + " are " + bound() +
             ", in norm and largest value, with the same NaN and Inf (" +
             std::to_string(r.outputs_compared - r.mismatched) + " bit for bit, the others at most " +
             short_text(r.elsewhere->distance) + " off)";
      break;
    case Agreement::differs:
      text = std::to_string(r.mismatched) + " of " + all + " differ";
      if (r.elsewhere && r.elsewhere->outside > 0)
        text += ", " + std::to_string(r.elsewhere->outside) + " of them not even " + bound();
      if (r.first_mismatch) text += ", first at op " + std::to_string(*r.first_mismatch);
      break;
    case Agreement::not_compared:
      text = "not reproduced: no output could be compared";
      break;
  }
  if (r.elsewhere && r.elsewhere->recorded_on != r.elsewhere->replayed_on)
    text += "; recorded on " + r.elsewhere->recorded_on + ", replayed on " + r.elsewhere->replayed_on;
  constexpr std::size_t kNamed = 4;
  for (std::size_t i = 0; !r.bit_exact && i < r.differences.size() && i < kNamed; ++i)
    text += (i ? ", " : "; not the same here: ") + r.differences[i];
  if (r.opaque_ops > 0)
    text += "; " + std::to_string(r.opaque_ops) + (r.opaque_ops == 1 ? " op" : " ops") +
            " could not be run again";
  return text;
}

std::string precision_text(const Verdict& v) {
  if (!v.found || !v.on_record.empty()) return "";
  const PrecisionInfo& p = v.precision;
  const auto tried = [&](const char* name, PrecisionResult result) {
    return std::string(name) + (result == PrecisionResult::finite       ? "finite"
                                : result == PrecisionResult::non_finite ? "not finite"
                                                                        : "not tried");
  };
  return effect_of(p.verdict) + tried(" (fp32 ", p.fp32) + tried(", fp64 ", p.fp64) + ")";
}

std::string unseen_text(const Unseen& u) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> parts;
  if (u.ops > 0) {
    std::string text = std::to_string(u.ops) + (u.ops == 1 ? " op" : " ops");
    for (std::size_t i = 0; i < u.names.size() && i < kNamed; ++i) {
      const auto& [op, count] = u.names[i];
      text += (i ? ", " : " (") + op + (count > 1 ? " (" + std::to_string(count) + ")" : "");
    }
    if (u.names.size() > kNamed) text += ", …";
    parts.push_back(text + (u.names.empty() ? "" : ")"));
  }
  if (u.loss) parts.emplace_back("the loss");
  if (u.gradients > 0)
    parts.push_back(std::to_string(u.gradients) + (u.gradients == 1 ? " gradient" : " gradients"));
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

std::string on_record_text(const Verdict& v) {
  return v.on_record.empty() ? "" : "on record because " + v.on_record;
}

std::string nothing_text(const Verdict& v) {
  const std::string step = "step " + std::to_string(v.step) + ": ";
  if (!v.unseen.any())
    return step + "no harmful NaN or Inf in this step" +
           (v.on_record.empty() ? "" : "; " + on_record_text(v));
  return step + "no harmful NaN or Inf in what could be looked at, but these values could not: " +
         unseen_text(v.unseen);
}

std::string unseen_advice() {
  return "Run the step with these values in memory that the probe reads (dense instead of sparse, nested or "
         "wrapped), then replay its file.";
}

std::string root_text(const RootCause& root) {
  std::string text(word(root.cause));
  text.append(" (").append(meaning(root.cause)).append(")");
  if (!root.change.empty())
    text.append(root.verified ? ", cured for the run by " : ", cured by ")
        .append(root.change)
        .append(": ")
        .append(std::to_string(root.steps))
        .append(root.steps == 1 ? " step" : " steps")
        .append(" past the failure");
  const auto list = [&](const char* lead, const auto& wanted) {
    std::string names;
    for (const std::string& change : root.tried)
      if (wanted(change)) names.append(names.empty() ? "" : ", ").append(change);
    if (!names.empty()) text.append("; ").append(lead).append(names);
  };
  const auto cures = [&](const std::string& change) {
    return std::find(root.cured.begin(), root.cured.end(), change) != root.cured.end();
  };
  list("cured too by ", [&](const std::string& change) { return change != root.change && cures(change); });
  list(root.change.empty() ? "nothing that was tried cures it: " : "tried in vain: ",
       [&](const std::string& change) { return change != root.change && !cures(change); });
  if (!root.file.empty()) text.append("; losses of all runs: ").append(root.file);
  return text;
}

std::string fix_text(const Fix& f) {
  std::string text =
      "with \"" + f.change + (f.scope == Scope::region ? "\" the region is finite" : "\" the step is finite");
  if (f.placebo_failed) text += ". A control change of the same size did not help";
  if (f.minimal)
    text += f.placebo_failed ? ", and no smaller change is a fix" : ". No smaller change is a fix";
  return text;
}

std::string no_fix_text(const Verdict& v) {
  const auto helps = [](const Counterfactual& c) {
    return c.kind != ChangeKind::placebo && c.result == TrialResult::finite && c.not_a_fix.empty();
  };
  if (v.counterfactuals.empty()) return "nothing was tried on this step";
  const auto found = std::find_if(v.counterfactuals.begin(), v.counterfactuals.end(), helps);
  if (found == v.counterfactuals.end()) return "nothing that was tried fixes this step";
  return "with \"" + found->change + "\" the step is finite, but no control experiment confirms it";
}

std::string trial_text(const Counterfactual& c) {
  std::string text(spoken(c.result));
  if (c.steps > 1) text += " for " + std::to_string(c.steps) + " steps";
  if (!c.measured.empty()) text += " (" + c.measured + ")";
  return c.not_a_fix.empty() ? text : text + ", but " + c.not_a_fix;
}

}  // namespace nanquest
