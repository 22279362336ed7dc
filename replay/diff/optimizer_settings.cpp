#include "replay/diff/optimizer_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "probe/trace/optimizer_settings.h"

namespace nanquest::diff {
namespace {

/// The value of a setting as text; "" if there is none.
std::string text_at(const nlohmann::json& group, const std::string& name) {
  if (!group.is_object() || !group.contains(name) || !group[name].is_string()) return "";
  return group[name].get<std::string>();
}

}  // namespace

std::string setting_that_differs(const SnapshotDoc& a, const SnapshotDoc& b, const std::string& in_a,
                                 const std::string& in_b) {
  std::set<std::string> names;
  for (const auto& [key, text] : a.environment) {
    const auto other = b.environment.find(key);
    if (!key.starts_with(kOptimizerKey) || other == b.environment.end()) continue;
    const auto left = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false),
               right = nlohmann::json::parse(other->second, nullptr, /*allow_exceptions=*/false);
    if (!left.is_array() || !right.is_array()) continue;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      if (!left[i].is_object()) continue;
      for (const auto& setting : left[i].items())
        if (text_at(left[i], setting.key()) == in_a && text_at(right[i], setting.key()) == in_b)
          names.insert(setting.key());
    }
  }
  return names.size() == 1 ? *names.begin() : "";
}

}  // namespace nanquest::diff
