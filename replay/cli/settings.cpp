// nanquest-replay settings TEXT…: the one reader of --set, for `nanquest rehearse`, which is Python.
#include <nlohmann/json.hpp>

#include <cstdio>

#include "replay/cli/commands.h"
#include "replay/verdict/setting_change.h"

namespace nanquest::cli {

int settings_command(const std::vector<std::string>& texts) {
  auto all = nlohmann::ordered_json::array();
  for (const std::string& text : texts) {
    const Result<std::vector<SettingChange>> changes = parse_settings(text);
    if (!changes) return fail(changes.error());
    auto list = nlohmann::ordered_json::array();
    for (const SettingChange& change : *changes) {
      nlohmann::ordered_json number;
      if (change.number) number = *change.number;
      list.push_back(
          {{"key", change.key}, {"value", change.value}, {"factor", change.factor}, {"number", number}});
    }
    all.push_back(std::move(list));
  }
  std::printf("%s\n", all.dump().c_str());
  return static_cast<int>(ExitCode::ok);
}

}  // namespace nanquest::cli
