#include "trainer/cli/command_line.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <numeric>
#include <type_traits>
#include <variant>
#include <vector>

#include "replay/verdict/setting_change.h"

namespace nanquest::trainer {
namespace {

std::string dashed(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

/// TOML whose keys may have underscores instead of an option's dashes.
class DashedToml : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override {
    std::vector<CLI::ConfigItem> read = CLI::ConfigTOML::from_config(in);
    for (CLI::ConfigItem& item : read) item.name = dashed(item.name);
    return read;
  }
};

/// Fewest insertions, deletions and replacements that turn `a` into `b` (Levenshtein).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

Error unknown_setting(const std::string& change, const std::string& key, const std::string& nearest) {
  return {ErrorCode::usage, "--set " + change + ": unknown setting \"" + key + "\"",
          "did you mean \"" + nearest + "\"?"};
}

/// The element of `known` (at least one) that is most similar to `key`.
const std::string& nearest_of(const std::vector<std::string>& known, const std::string& key) {
  return *std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(key, a) < edit_distance(key, b);
  });
}

CLI::Option* add_text(CLI::App& app, const std::string& names, const Setting& s, const TextValue& value) {
  const auto set = [&value](const std::vector<std::string>& given) {
    for (const std::string& text : given)
      if (Status ok = value.set(text); !ok) throw Refused{ok.error()};
  };
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(names, set, s.help);
  option->default_str(value.text());
  if (value.repeated) return option->multi_option_policy(CLI::MultiOptionPolicy::Throw)->expected(1, 64);
  return option->expected(1)->check(CLI::IsMember(value.words));
}

}  // namespace

void add_options(CLI::App& app, const SettingList& list) {
  app.config_formatter(std::make_shared<DashedToml>());
  app.option_defaults()->ignore_underscore()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  for (const Setting& s : list.all()) {
    const std::string names = "--" + s.key + (s.alias.empty() ? "" : ",--" + s.alias);
    CLI::Option* option = std::visit(
        [&](const auto& v) -> CLI::Option* {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, TextValue>)
            return add_text(app, names, s, v);
          else if constexpr (std::is_same_v<T, bool*>)
            return app.add_flag(names + (s.negatable ? ",!--no-" + s.key : ""), *v, s.help);
          else
            return app.add_option(names, *v, s.help)->capture_default_str();
        },
        s.value);
    option->group(s.group);
    if (!s.type_name.empty()) option->type_name(s.type_name);
  }
}

Status check_config_file(const SettingList& list, const std::string& path) {
  std::ifstream in(path);
  if (!in || in.peek() == std::ifstream::traits_type::eof())
    return Error{ErrorCode::bad_file, path + ": " + (in.is_open() ? "the file is empty" : "can't be opened"),
                 "give --config a TOML file"};
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_config(in);  // keys as they were typed
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_file, path + ": " + e.what(), "it must be TOML: key = value"};
  }
  std::vector<std::string> known;
  for (const Setting& s : list.all()) {
    known.push_back(s.key);
    if (!s.alias.empty()) known.push_back(s.alias);
    if (s.negatable) known.push_back("no-" + s.key);
  }
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // how the parser marks the edges of a section
    if (!item.parents.empty())
      return Error{ErrorCode::usage, path + ": section [" + item.parents.front() + "] is not known",
                   "write all keys at the top level"};
    const std::string key = dashed(item.name);
    const std::string& nearest = nearest_of(known, key);
    if (nearest != key)
      return Error{ErrorCode::usage, path + ": unknown key \"" + item.name + "\"",
                   "did you mean \"" + nearest + "\"?"};
  }
  return {};
}

Status take_changes(const SettingList& list, std::vector<std::string>& arguments,
                    std::set<std::string>& keys) {
  std::vector<std::string> known, kept, changes;
  for (const Setting& s : list.all()) known.push_back(s.key);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string change;
    if (arguments[i].starts_with("--set=")) {
      change = arguments[i].substr(6);
    } else if (arguments[i] == "--set" && i + 1 < arguments.size()) {
      change = arguments[++i];
    } else {
      kept.push_back(arguments[i]);
      continue;
    }
    const Result<SettingChange> set = parse_setting(change);
    if (!set) return set.error();
    if (const std::string& nearest = nearest_of(known, set->key); nearest != set->key)
      return unknown_setting(change, set->key, nearest);
    keys.insert(set->key);
    changes.push_back("--" + set->key + "=" + set->value);
  }
  arguments = std::move(kept);
  arguments.insert(arguments.end(), changes.begin(), changes.end());
  return {};
}

}  // namespace nanquest::trainer
