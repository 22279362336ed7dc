#include "trainer/optim/groups.h"

#include <algorithm>
#include <utility>

namespace nanquest::trainer {

Result<std::vector<MoveRule>> move_rules(const NamedTensors& parameters,
                                         const std::vector<ParameterGroup>& groups, double weight_decay) {
  std::vector<bool> used(groups.size(), false);
  std::vector<MoveRule> rules;
  for (const auto& [name, p] : parameters) {
    MoveRule rule{1.0, p.dim() >= 2 ? weight_decay : 0.0};
    const auto found = std::find_if(groups.begin(), groups.end(), [&name = name](const ParameterGroup& g) {
      return name.find(g.within) != std::string::npos;
    });
    if (found != groups.end()) {
      used[static_cast<std::size_t>(found - groups.begin())] = true;
      rule.lr_factor = found->lr_factor;
      rule.weight_decay = found->weight_decay.value_or(rule.weight_decay);
    }
    rules.push_back(rule);
  }
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (!used[i])
      return Error{ErrorCode::usage, "no weight is left for the group \"" + groups[i].within + "\"",
                   "the first group whose words are in a weight's name has it"};
  return rules;
}

std::vector<std::pair<MoveRule, std::vector<std::size_t>>> by_rule(const std::vector<MoveRule>& rules) {
  std::vector<std::pair<MoveRule, std::vector<std::size_t>>> all;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == rules[i]; });
    if (found == all.end()) found = all.insert(all.end(), {rules[i], {}});
    found->second.push_back(i);
  }
  return all;
}

}  // namespace nanquest::trainer
