#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "replay/diff/words.h"

namespace nanquest::diff {
namespace {

constexpr std::size_t kShownFindings = 2, kShownNotes = 3;

std::string percent(double share) {
  return std::to_string(static_cast<int>(share * 100)) + " %";
}

std::string apart_text(const Finding& f) {
  if (f.kind == Kind::region) return "its operators were run one by one on what the region was given";
  if (f.kind == Kind::batch || f.kind == Kind::state) return number(f.distance.found) + " of its size";
  return number(f.distance.found) + " of its size, where a change of the last bit makes " +
         number(f.distance.rounding) + (f.inputs_agree ? "; its inputs agree" : "");
}

}  // namespace

std::string tried(const Finding& f) {
  switch (f.kind) {
    case Kind::argument:
      if (!f.how.empty()) return f.how;
      return f.shown ? "with B's " + number_name(f) + " A gives B's value" : "";
    case Kind::random:
      return "the same inputs and numbers, but the generator was in another state";
    case Kind::operations:
    case Kind::input:
      if (f.widened == "both")
        return "with both in " + f.in_format +
               " A gives B's value: the order of their sums makes the difference";
      return "with B's input A gives B's value";
    case Kind::format:
      if (f.shown)
        return "with " + f.widened + "'s operations in " + f.in_format + " both give the same value";
      return "none of the changes that were tried makes A give B's value";
    case Kind::value:
      if (f.a < 0) return "";
      if (f.widened == "both")
        return "with both in " + f.in_format +
               " A gives B's value: the order of their sums makes the difference";
      return "none of the changes that were tried makes A give B's value";
    case Kind::ranks:
      return f.how;
    default:
      return "";
  }
}

namespace {

std::string numbers(const std::vector<std::int64_t>& values) {
  std::string text;
  for (const std::int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

/// "rank 1 (rank 0 is alike)": which ranks were compared, and with what result.
std::string of_ranks_text(const Runs& runs) {
  const auto named = [](const std::vector<std::int32_t>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + numbers({ranks.begin(), ranks.end()});
  };
  if (runs.differ.empty() && runs.alike.size() > 1) return named(runs.alike) + ", each with its own";
  std::string others;
  for (const std::int32_t rank : runs.differ)
    if (rank != runs.rank)
      others += (others.empty() ? "rank " : ", rank ") + std::to_string(rank) + " differs, too";
  if (!runs.differ.empty() && !runs.alike.empty())
    others += (others.empty() ? "" : ", ") + named(runs.alike) + (runs.alike.size() == 1 ? " is" : " are") +
              " alike";
  return named({runs.rank}) + (others.empty() ? "" : " (" + others + ")");
}

std::string ranks_text(const Ranks& ranks) {
  return std::string("one rank in ") + (ranks.a_is_many ? "B" : "A") + ", ranks " +
         numbers({ranks.many.begin(), ranks.many.end()}) + " in " + (ranks.a_is_many ? "A" : "B") +
         ": their values were put together";
}

std::string formats_text(const Formats& f) {
  return std::to_string(f.places) + (f.places == 1 ? " operation computes in " : " operations compute in ") +
         f.in_a + " in A and in " + f.in_b + " in B, first " + f.first;
}

std::string fp64_text(const InFp64& wide, bool alike) {
  if (!wide.why_not.empty()) return "not tried: " + wide.why_not;
  if (wide.hidden)
    return "the differences above were found there; rounding in the recorded formats hides them";
  if (wide.alike)
    return alike ? "equal within rounding, too: both steps compute the same"
                 : "equal within rounding: both steps compute the same, in other formats or in another order";
  const std::string where =
      place(wide.where) + " is " + number(wide.where.distance.found) + " of its size apart";
  return where + (alike ? "; no change that was tried explains it" : ": not a matter of rounding");
}

std::string states_text(const Runs& runs) {
  const auto end = std::find(runs.steps.begin(), runs.steps.end(), runs.differs_before.value_or(-1));
  const std::vector<std::int64_t> equal(runs.steps.begin(), end);
  std::string text;
  if (!equal.empty())
    text =
        "equal to the bit at the start of step" + std::string(equal.size() > 1 ? "s " : " ") + numbers(equal);
  if (!runs.differs_before) return text;
  std::string first;
  for (const auto& [kind, name] : {std::pair{"parameter ", &runs.parameter},
                                   {"buffer ", &runs.buffer},
                                   {"optimizer's ", &runs.optimizer}})
    if (!name->empty()) first += (first.empty() ? "" : ", ") + std::string(kind) + *name;
  return text + (text.empty() ? "" : "; ") + "different at the start of step " +
         std::to_string(*runs.differs_before) + ": first " + first;
}

std::string loss_text(const Runs& runs) {
  std::string equal = "equal to the bit in " + std::to_string(runs.equal_losses) + " steps";
  if (!runs.loss_step) return equal;
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%.9g in A, %.9g in B", runs.loss_a, runs.loss_b);
  return equal + ", different in step " + std::to_string(*runs.loss_step) + ": " + text.data();
}

std::string ends_text(const std::vector<Group>& ends) {
  std::string text;
  for (const Group& g : ends) {
    if (!text.empty()) text += "; ";
    text += g.name + ": ";
    text += g.differ == 0 ? "equal within rounding"
                          : std::to_string(g.differ) + " of " + std::to_string(g.compared) + " differ";
    if (g.differ > 0)
      text += " (" + (g.name == g.first ? "" : g.first + ": ") + number(g.distance.found) + ", last bit " +
              number(g.distance.rounding) + ")";
  }
  return text;
}

}  // namespace

std::vector<Line> lines_of(const Report& r, bool full) {
  std::vector<Line> lines;
  const auto add = [&](const char* head, std::string body) { lines.push_back({head, std::move(body)}); };
  if (!r.same_program) {
    add("DIFFERENT", "these two have " + percent(r.share) + " of operations in common: not the same program");
    add("operations", std::to_string(r.ops_a) + " in A, " + std::to_string(r.ops_b) + " in B");
    return lines;
  }
  if (r.alike()) add("ALIKE", "equal within rounding");
  const std::size_t shown = full ? r.findings.size() : std::min(r.findings.size(), kShownFindings);
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& f = r.findings[i];
    if (f.follows >= 0 && !full) {
      add("then", "its derivative: " + f.op + " (op " + std::to_string(f.a) + " in A, " +
                      std::to_string(f.b) + " in B)");
      continue;
    }
    add(i == 0 ? "DIFFERS" : "then", sentence(f));
    add("apart", apart_text(f));
    if (const std::string experiment = tried(f); !experiment.empty()) add("tried", experiment);
  }
  if (shown < r.findings.size())
    add("then", std::to_string(r.findings.size() - shown) + " more differences (--full)");
  if (r.ranks ? r.complete && !r.findings.empty() : !r.findings.empty())
    add("all", r.ranks && r.ranks->a_is_many
                   ? "with all of this put into B, B gives A's step: nothing else differs beyond rounding"
               : r.complete
                   ? "with all of this put into A, A gives B's step: nothing else differs beyond rounding"
                   : "more differs than was found");
  if (r.formats) add("formats", formats_text(*r.formats));
  if (r.in_fp64) add("in fp64", fp64_text(*r.in_fp64, r.alike()));
  if (!r.ends.empty()) add("step's end", ends_text(r.ends));
  add("operations", std::to_string(r.ops_a) + " in A, " + std::to_string(r.ops_b) + " in B, " +
                        std::to_string(r.in_common) + " in common");
  if (r.ranks) add("ranks", ranks_text(*r.ranks));
  if (r.runs) {
    add("compared", "step " + std::to_string(r.runs->steps.back()) + " of " + of_ranks_text(*r.runs) +
                        "; both runs have files of step" + (r.runs->steps.size() > 1 ? "s " : " ") +
                        numbers(r.runs->steps));
    add("states", states_text(*r.runs));
    if (r.runs->equal_losses > 0 || r.runs->loss_step) add("losses", loss_text(*r.runs));
  }
  const std::size_t notes = full ? r.notes.size() : std::min(r.notes.size(), kShownNotes);
  for (std::size_t i = 0; i < notes; ++i) add("also", r.notes[i]);
  if (notes < r.notes.size()) add("also", std::to_string(r.notes.size() - notes) + " more (--full)");
  return lines;
}

std::string to_text(const Report& r, bool full) {
  std::string text;
  for (auto& [head, body] : lines_of(r, full)) {
    std::string padded = head;
    padded.resize(12, ' ');
    text += padded + body + "\n";
  }
  return text;
}

}  // namespace nanquest::diff
