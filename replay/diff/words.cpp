#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "replay/diff/report.h"

namespace nanquest::diff {
namespace {

constexpr std::size_t kShownFindings = 2, kShownOps = 4, kShownNotes = 3;

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", value);
  return text.data();
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(share * 100)) + " %";
}

std::string listed(const std::vector<std::string>& ops) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ops.size(), kShownOps); ++i) text += (i ? ", " : "") + ops[i];
  if (ops.size() > kShownOps) text += " and " + std::to_string(ops.size() - kShownOps) + " more";
  return text;
}

std::string place(const Finding& f) {
  return f.op + (f.module.empty() ? "" : " in " + f.module) +
         (f.parameter.empty() ? "" : " for " + f.parameter) + " (" + f.phase + ", op " + std::to_string(f.a) +
         " in A, " + std::to_string(f.b) + " in B)";
}

std::string what(const Finding& f) {
  const std::string more = f.places > 1 ? ", " + std::to_string(f.places) + " places" : "";
  switch (f.kind) {
    case Kind::batch:
      return "the batches differ: " + f.name +
             (f.places > 1 ? " and " + std::to_string(f.places - 1) + " more" : "");
    case Kind::state:
      return "the state differs before the step: " + f.name +
             (f.places > 1 ? " and " + std::to_string(f.places - 1) + " more" : "");
    case Kind::argument:
      return place(f) + ": " + f.name + " is " + f.in_a + " in A and " + f.in_b + " in B" + more;
    case Kind::random:
      return place(f) + ": other random numbers";
    case Kind::operations:
      if (f.only_a.empty()) return place(f) + ": only B runs " + listed(f.only_b) + " before it" + more;
      if (f.only_b.empty()) return place(f) + ": only A runs " + listed(f.only_a) + " before it" + more;
      return place(f) + ": A runs " + listed(f.only_a) + " before it, B runs " + listed(f.only_b) + more;
    case Kind::input:
      return place(f) + ": " + f.name + " is " + f.in_a + " in A and " + f.in_b + " in B" + more;
    case Kind::format:
      return place(f) + ": computed in " + f.in_a + " in A and in " + f.in_b + " in B";
    case Kind::value:
      if (f.a < 0) return f.name + " differs, but no operation that both have does";
      return place(f) + ": another value";
  }
  return "";
}

std::string apart_text(const Finding& f) {
  if (f.kind == Kind::batch || f.kind == Kind::state) return number(f.distance.found) + " of its size";
  return number(f.distance.found) + " of its size, where a change of the last bit makes " +
         number(f.distance.rounding) + (f.inputs_agree ? "; its inputs agree" : "");
}

std::string tried(const Finding& f) {
  switch (f.kind) {
    case Kind::argument:
      return f.shown ? "with B's " + f.name + " A gives B's value" : "";
    case Kind::random:
      return "the same inputs and numbers, but the generator was in another state";
    case Kind::operations:
    case Kind::input:
      return "with B's input A gives B's value";
    case Kind::format:
    case Kind::value:
      if (f.a < 0) return "";
      return "none of the changes that were tried makes A give B's value";
    default:
      return "";
  }
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

void line(std::string& text, const std::string& head, const std::string& body) {
  std::string padded = head;
  padded.resize(12, ' ');
  text += padded + body + "\n";
}

nlohmann::ordered_json json_of(const Finding& f) {
  const auto op_number = [](std::int32_t op) {
    return op < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(op);
  };
  return {{"kind", std::string(word(f.kind))},
          {"op", f.op},
          {"module", f.module},
          {"phase", f.phase},
          {"parameter", f.parameter},
          {"op_a", op_number(f.a)},
          {"op_b", op_number(f.b)},
          {"name", f.name},
          {"in_a", f.in_a},
          {"in_b", f.in_b},
          {"places", f.places},
          {"follows", op_number(f.follows)},
          {"only_a", f.only_a},
          {"only_b", f.only_b},
          {"distance", f.distance.found},
          {"rounding", f.distance.rounding},
          {"inputs_agree", f.inputs_agree},
          {"shown", f.shown},
          {"text", what(f)}};
}

}  // namespace

std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::batch:
      return "batch";
    case Kind::state:
      return "state";
    case Kind::argument:
      return "argument";
    case Kind::random:
      return "random";
    case Kind::operations:
      return "operations";
    case Kind::input:
      return "input";
    case Kind::format:
      return "format";
    case Kind::value:
      return "value";
  }
  return "value";
}

namespace {

/// "aten::addmm in blocks.1 (op 34)" without the place.
std::string operator_alone(const std::string& op) {
  return op.substr(0, op.find(' '));
}

bool same_operators(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const std::string& l, const std::string& r) {
    return operator_alone(l) == operator_alone(r);
  });
}

}  // namespace

bool is_same(const Finding& a, const Finding& b) {
  if (a.kind != b.kind || a.op != b.op || a.phase != b.phase || a.name != b.name) return false;
  if (a.kind == Kind::argument) return a.in_a == b.in_a && a.in_b == b.in_b;
  if (a.kind == Kind::operations)
    return same_operators(a.only_a, b.only_a) && same_operators(a.only_b, b.only_b);
  return a.kind == Kind::random || a.kind == Kind::input || a.kind == Kind::format;
}

std::string to_text(const Report& r, bool full) {
  std::string text;
  if (!r.same_program) {
    line(text, "DIFFERENT",
         "these two have " + percent(r.share) + " of operations in common: not the same program");
    line(text, "operations", std::to_string(r.ops_a) + " in A, " + std::to_string(r.ops_b) + " in B");
    return text;
  }
  if (r.alike()) line(text, "ALIKE", "equal within rounding");
  const std::size_t shown = full ? r.findings.size() : std::min(r.findings.size(), kShownFindings);
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& f = r.findings[i];
    if (f.follows >= 0 && !full) {
      line(text, "then",
           "its derivative: " + f.op + " (op " + std::to_string(f.a) + " in A, " + std::to_string(f.b) +
               " in B)");
      continue;
    }
    line(text, i == 0 ? "DIFFERS" : "then", what(f));
    line(text, "apart", apart_text(f));
    if (const std::string experiment = tried(f); !experiment.empty()) line(text, "tried", experiment);
  }
  if (shown < r.findings.size())
    line(text, "then", std::to_string(r.findings.size() - shown) + " more differences (--full)");
  if (!r.findings.empty())
    line(text, "all",
         r.complete ? "with all of this put into A, A gives B's step: nothing else differs beyond rounding"
                    : "more differs than was found");
  if (!r.ends.empty()) line(text, "step's end", ends_text(r.ends));
  line(text, "operations",
       std::to_string(r.ops_a) + " in A, " + std::to_string(r.ops_b) + " in B, " +
           std::to_string(r.in_common) + " in common");
  const std::size_t notes = full ? r.notes.size() : std::min(r.notes.size(), kShownNotes);
  for (std::size_t i = 0; i < notes; ++i) line(text, "also", r.notes[i]);
  if (notes < r.notes.size()) line(text, "also", std::to_string(r.notes.size() - notes) + " more (--full)");
  return text;
}

std::string to_json(const Report& r) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array(), ends = nlohmann::ordered_json::array();
  for (const Finding& f : r.findings) findings.push_back(json_of(f));
  for (const Group& g : r.ends)
    ends.push_back({{"name", g.name},
                    {"compared", g.compared},
                    {"differ", g.differ},
                    {"first", g.first},
                    {"distance", g.distance.found},
                    {"rounding", g.distance.rounding}});
  const nlohmann::ordered_json j = {{"format", "nanquest.diff"},
                                    {"version", 1},
                                    {"a", r.file_a},
                                    {"b", r.file_b},
                                    {"step_a", r.step_a},
                                    {"step_b", r.step_b},
                                    {"alike", r.alike()},
                                    {"same_program", r.same_program},
                                    {"ops_a", r.ops_a},
                                    {"ops_b", r.ops_b},
                                    {"in_common", r.in_common},
                                    {"share", r.share},
                                    {"equal_pairs", r.equal_pairs},
                                    {"findings", findings},
                                    {"complete", r.complete},
                                    {"ends", ends},
                                    {"notes", r.notes}};
  return j.dump(2) + "\n";
}

}  // namespace nanquest::diff
