#include "replay/verdict/setting_change.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace nanquest {

Result<SettingChange> parse_setting(const std::string& text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  SettingChange change{.key = text.substr(0, equals)};
  std::replace(change.key.begin(), change.key.end(), '_', '-');
  if (equals + 1 >= text.size() || change.key.empty())
    return Error{ErrorCode::usage, "--set " + text + " has no " + (change.key.empty() ? "name" : "value"),
                 "give --set KEY=VALUE"};
  change.value = text.substr(equals + 1);
  change.factor = change.value.starts_with('*');
  const char* const begin = change.value.c_str() + (change.factor ? 1 : 0);
  char* end = nullptr;
  const double number = std::strtod(begin, &end);
  if (end != begin && *end == '\0' && std::isfinite(number)) change.number = number;
  return change;
}

Result<std::vector<SettingChange>> parse_settings(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream words(text);
  for (std::string part; std::getline(words, part, ',');)
    if (part.find('=') == std::string::npos && !parts.empty())
      parts.back() += "," + part;
    else
      parts.push_back(part);
  std::vector<SettingChange> changes;
  for (const std::string& part : parts) {
    Result<SettingChange> change = parse_setting(part);
    if (!change) return change.error();
    changes.push_back(std::move(*change));
  }
  return changes;
}

}  // namespace nanquest
