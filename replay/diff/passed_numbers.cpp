#include "replay/diff/passed_numbers.h"

#include <algorithm>

namespace nanquest::diff {

std::vector<NumberGroup> number_groups(const Steps& steps) {
  std::vector<NumberGroup> groups;
  for (const OpPair& pair : steps.alignment.pairs) {
    if (steps.graph_a.op(pair.a).overload != steps.graph_b.op(pair.b).overload) continue;
    const auto left = constants_of(steps.a, pair.a), right = constants_of(steps.b, pair.b);
    for (const Constant& a : left)
      for (const Constant& b : right) {
        if (a.position != b.position || a.text == b.text) continue;
        NumberGroup group{steps.graph_a.op(pair.a).name, a.name, a.text, b.text, {}};
        const auto found =
            std::find_if(groups.begin(), groups.end(), [&](const NumberGroup& g) { return g.same(group); });
        NumberGroup& into = found == groups.end() ? groups.emplace_back(std::move(group)) : *found;
        into.places.emplace_back(pair.a, b);
      }
  }
  return groups;
}

std::vector<std::string> differing_numbers(const Steps& steps, const std::vector<Finding>& named) {
  std::vector<std::string> lines;
  for (const NumberGroup& group : number_groups(steps)) {
    const bool is_named = std::any_of(named.begin(), named.end(), [&](const Finding& f) {
      return f.name == group.name && f.in_a == group.in_a && f.in_b == group.in_b;
    });
    if (is_named) continue;
    const std::string module = plain_path(steps.graph_a.module_of(group.places.front().first));
    lines.push_back(group.name + " of " + group.op + (module.empty() ? "" : " in " + module) + ": " +
                    group.in_a + " in A, " + group.in_b + " in B (" + std::to_string(group.places.size()) +
                    " ops)");
  }
  return lines;
}

}  // namespace nanquest::diff
