#include <algorithm>
#include <array>
#include <cstdio>

#include "replay/diff/words.h"

namespace nanquest::diff {
namespace {

constexpr std::size_t kShownOps = 4;

std::string listed(const std::vector<std::string>& ops) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ops.size(), kShownOps); ++i) text += (i ? ", " : "") + ops[i];
  if (ops.size() > kShownOps) text += " and " + std::to_string(ops.size() - kShownOps) + " more";
  return text;
}

}  // namespace

std::string number_name(const Finding& f) {
  return f.setting.empty() ? f.name : f.name + " (the optimizer's " + f.setting + ")";
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", value);
  return text.data();
}

std::string place(const Finding& f) {
  return f.op + (f.module.empty() ? "" : " in " + f.module) +
         (f.parameter.empty() ? "" : " for " + f.parameter) + " (" + f.phase + ", op " + std::to_string(f.a) +
         " in A, " + std::to_string(f.b) + " in B)";
}

std::string sentence(const Finding& f) {
  const std::string more = f.places > 1 ? ", " + std::to_string(f.places) + " places" : "";
  switch (f.kind) {
    case Kind::batch:
      return "the batches differ: " + f.name +
             (f.places > 1 ? " and " + std::to_string(f.places - 1) + " more" : "");
    case Kind::state:
      return "the state differs before the step: " + f.name +
             (f.places > 1 ? " and " + std::to_string(f.places - 1) + " more" : "");
    case Kind::argument:
      return place(f) + ": " + number_name(f) + " is " + f.in_a + " in A and " + f.in_b + " in B" + more;
    case Kind::random:
      return place(f) + ": other random numbers";
    case Kind::operations:
      if (f.only_a.empty()) return place(f) + ": only B runs " + listed(f.only_b) + " before it" + more;
      if (f.only_b.empty()) return place(f) + ": only A runs " + listed(f.only_a) + " before it" + more;
      return place(f) + ": A runs " + listed(f.only_a) + " before it, B runs " + listed(f.only_b) + more;
    case Kind::input:
      return place(f) + ": " + f.name + " is " + f.in_a + " in A and " + f.in_b + " in B" + more;
    case Kind::format:
      return place(f) + ": computed in " + f.in_a + " in A and in " + f.in_b + " in B" + more;
    case Kind::ranks:
      if (!f.name.empty()) return (f.a < 0 ? "" : place(f) + ": ") + f.name + more;
      return place(f) + ": the other ranks gave something else; compare their files";
    case Kind::region:
      return place(f) + ": " + f.name;
    case Kind::value:
      if (f.a < 0) return f.name + " differs, but no operation that both have does";
      return place(f) + ": another value";
  }
  return "";
}

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
    case Kind::ranks:
      return "ranks";
    case Kind::region:
      return "region";
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

}  // namespace nanquest::diff
