#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "probe/snapshot/collect.h"
#include "replay/verdict/sentences.h"
#include "replay/verdict/together.h"

namespace nanquest {
namespace {

std::string told_line(const std::string& label, const std::string& text) {
  std::string line = label;
  line.resize(std::max<std::size_t>(12, label.size() + 1), ' ');
  return line + text + "\n";
}

std::string told_value(double value) {
  if (std::isnan(value)) return "NaN";
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

/// "c10d::allreduce_ (sum; op 60 of rank 0, 69 of rank 1)".
std::string told_collective_name(const CollectiveInfo& c) {
  std::string text = c.op + " (" +
                     (c.reduction.empty()        ? ""
                      : c.reduction == "unknown" ? "taken for a sum; "
                                                 : c.reduction + "; ");
  for (std::size_t i = 0; i < c.at.size() && i < 4; ++i)
    text += (i ? ", " : "op ") + std::to_string(c.at[i].index) + " of rank " + std::to_string(c.at[i].rank);
  return text + (c.at.size() > 4 ? ", …)" : ")");
}

std::string told_culprit(const RanksVerdict& v) {
  const RankCulprit& first = *v.first;
  std::string text = "rank " + std::to_string(first.rank) + ": ";
  const std::string op = op_text(first);
  if (first.origin == Origin::op)
    text += op + ", made " + spoken(v.value);
  else
    text += std::string(spoken(first.origin)) +
            (first.tensor.empty() || first.tensor == spoken(first.origin) ? "" : " " + first.tensor) +
            " held " + spoken(v.value) + " when the step began" +
            (first.op.empty() ? "" : "; first read by " + op);
  return text;
}

std::string told_shown(const RankShown& s) {
  std::string text = "rank " + std::to_string(s.rank) + ": " + (s.loss ? "the loss" : "");
  if (s.gradients.empty()) return text;
  text += std::string(s.loss ? ", " : "") + "the gradient" + (s.gradients.size() == 1 ? " of " : "s of ");
  for (std::size_t i = 0; i < s.gradients.size() && i < 3; ++i) text += (i ? ", " : "") + s.gradients[i];
  return text + (s.gradients.size() > 3 ? " and " + std::to_string(s.gradients.size() - 3) + " more" : "");
}

std::string told_proof(const RanksVerdict& v) {
  const RanksProof& p = v.proof;
  std::vector<std::int32_t> ranks;
  for (const RankFile& f : v.files) ranks.push_back(f.rank);
  if (!p.tried) return "not tried: " + p.why_not;
  return p.change + " made harmless, and the collectives done anew: " +
         (p.healed ? "loss and gradients of " + named_ranks(ranks) + " are finite"
                   : "with that not all are finite of " + named_ranks(ranks));
}

std::string told_replicas(const ReplicasInfo& r) {
  const std::string weights = std::to_string(r.compared) + (r.compared == 1 ? " weight" : " weights");
  if (r.different == 0) return weights + " as on the other ranks, bit for bit: " + named_ranks(r.ranks);
  std::vector<std::int32_t> others;
  for (const std::int32_t rank : r.ranks)
    if (std::find(r.odd.begin(), r.odd.end(), rank) == r.odd.end()) others.push_back(rank);
  const std::string which =
      r.known ? r.tensor + " of " + named_ranks(r.odd) + " is not that of " + named_ranks(others)
              : r.tensor + " is not the same on " + named_ranks(r.ranks) +
                    ", and no more than half of them agree";
  return which + " when the step begins: element " + std::to_string(r.element) + " is the first; " +
         std::to_string(r.different) + " of " + weights + (r.different == 1 ? " differs" : " differ");
}

std::string told_alone(const AloneInfo& a) {
  const std::string rank = "rank " + std::to_string(a.rank);
  if (a.why == Alone::desynchronised) return rank + " alone began the step with other weights";
  return rank + ": " + a.op + (a.module.empty() ? "" : " in " + a.module) + ", op " +
         std::to_string(a.index) +
         ", gave something else than its inputs give: replayed it gives bit for bit what rank " +
         std::to_string(a.witness) + " made there of the same inputs";
}

/// "5 follow from what the ranks gave, bit for bit; 1 within what the order of a sum may change".
std::string told_counts(const RanksVerdict& v) {
  std::map<Follows, int> counts;
  for (const CollectiveInfo& c : v.collectives) ++counts[c.follows];
  std::string text;
  const auto add = [&](Follows follows, const char* words) {
    if (counts[follows] > 0)
      text += (text.empty() ? "" : "; ") + std::to_string(counts[follows]) + " " + words;
  };
  add(Follows::exact, "came out as recorded, bit for bit");
  add(Follows::within, "within what the order of a sum may change");
  add(Follows::differs, "NOT as recorded");
  add(Follows::unknown, "could not be done here");
  return text.empty() ? "none" : text;
}

}  // namespace

std::string_view word(Follows follows) {
  switch (follows) {
    case Follows::exact:
      return "exact";
    case Follows::within:
      return "within";
    case Follows::differs:
      return "differs";
    case Follows::unknown:
      break;
  }
  return "unknown";
}

std::string_view word(RanksFinding finding) {
  switch (finding) {
    case RanksFinding::none:
      return "none";
    case RanksFinding::rank:
      return "rank";
    case RanksFinding::collective:
      return "collective";
    case RanksFinding::unknown:
      break;
  }
  return "unknown";
}

std::string_view word(Alone alone) {
  return alone == Alone::hardware ? "hardware" : "desynchronised";
}

bool RanksVerdict::any_differs() const {
  return std::any_of(collectives.begin(), collectives.end(),
                     [](const CollectiveInfo& c) { return c.follows == Follows::differs; });
}

std::string to_text(const RanksVerdict& v) {
  std::vector<std::int32_t> ranks;
  for (const RankFile& f : v.files) ranks.push_back(f.rank);
  std::string text = told_line("step", std::to_string(v.step) + ", " + named_ranks(ranks) + " of " +
                                           std::to_string(v.world_size) + " together");
  switch (v.finding) {
    case RanksFinding::none:
      text +=
          told_line("nothing", "no rank's loss or gradients are bad, and no collective is not as recorded");
      if (v.any_differs() || v.replicas_differ()) text.erase(text.rfind("nothing"));
      break;
    case RanksFinding::rank:
      text += told_line("FIRST", told_culprit(v));
      break;
    case RanksFinding::collective: {
      const CollectiveInfo& c = v.collectives[static_cast<std::size_t>(v.made_by)];
      text += told_line(
          "FIRST", told_collective_name(c) + ": every rank gave finite numbers, what it made of them is not");
      break;
    }
    case RanksFinding::unknown:
      text += told_line("UNKNOWN", "it came from " + v.came_from);
      break;
  }
  if (v.alone)
    text += told_line(v.alone->why == Alone::hardware ? "HARDWARE" : "DESYNCHRONISED", told_alone(*v.alone));
  for (const RankHop& hop : v.path)
    text +=
        told_line("path", named_ranks(hop.from) + " to " + named_ranks(hop.to) + " by " +
                              told_collective_name(v.collectives[static_cast<std::size_t>(hop.collective)]));
  for (const RankShown& s : v.shown) text += told_line("shown", told_shown(s));
  if (v.finding == RanksFinding::rank) text += told_line("proof", told_proof(v));
  for (const CollectiveInfo& c : v.collectives)
    for (const CollectiveAtRank& at : c.at)
      if (at.follows == Follows::differs)
        text += told_line("WRONG", told_collective_name(c) + ": what rank " + std::to_string(at.rank) +
                                       " recorded does not follow from what " + named_ranks(c.ranks) +
                                       " gave: element " + std::to_string(at.first) + " is " +
                                       told_value(at.recorded) + ", computed " + told_value(at.computed) +
                                       " (" + std::to_string(at.different) + " of " +
                                       std::to_string(at.elements) + " differ)");
  if (v.replicas)
    text += told_line(v.replicas_differ() ? "REPLICAS" : "replicas", told_replicas(*v.replicas));
  text += told_line("collectives", told_counts(v));
  std::map<std::string, int> reasons;
  for (const CollectiveInfo& c : v.collectives)
    if (c.follows == Follows::unknown) ++reasons[c.op + ": " + c.why_not];
  for (const auto& [reason, count] : reasons)
    text += told_line("", "- " + reason + (count > 1 ? " (" + std::to_string(count) + " of them)" : ""));
  for (const RankFile& f : v.files)
    text += told_line(
        "replay",
        "rank " + std::to_string(f.rank) + ": " +
            (f.reproduction.bit_exact ? "bit for bit"
                                      : std::to_string(f.reproduction.mismatched) + " outputs differ") +
            ", " + std::to_string(f.reproduction.outputs_compared) + " compared (" + f.file + ")");
  if (!v.writers.empty()) text += told_line("", "not all ranks were recorded by the same: " + v.writers);
  if (!v.rows.empty())
    text += told_line(
        "", named_ranks(v.rows) + " left rows instead of files" +
                (v.rows_name < 0 ? "" : ", which name " + named_ranks({v.rows_name}) + " as the first"));
  if (!v.missing.empty())
    text += told_line("", named_ranks(v.missing) + (v.missing.size() == 1 ? " is" : " are") + " not there");
  return text;
}

}  // namespace nanquest
