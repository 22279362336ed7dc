#include "trainer/cli/config_keys.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <vector>

namespace nanquest::trainer {

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

Status check_config_keys(const CLI::App& app, const std::string& path) {
  std::ifstream in(path);
  if (!in || in.peek() == std::ifstream::traits_type::eof())
    return Error{ErrorCode::bad_file, path + ": " + (in.is_open() ? "the file is empty" : "can't be opened"),
                 "give --config a TOML file"};
  std::vector<CLI::ConfigItem> items;
  try {
    items = app.get_config_formatter_base()->from_config(in);
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_file, path + ": " + e.what(), "it must be TOML: key = value"};
  }
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // how the parser marks the edges of a section
    if (!item.parents.empty())
      return Error{ErrorCode::usage, path + ": section [" + item.parents.front() + "] is not known",
                   "write all keys at the top level"};
    std::string key = item.name;
    std::replace(key.begin(), key.end(), '_', '-');
    std::string nearest;
    std::size_t distance = std::string::npos;
    bool known = false;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (name == "help" || name == "version" || name == "config") continue;
        known = known || name == key;
        if (const std::size_t d = edit_distance(key, name); d < distance) {
          distance = d;
          nearest = name;
        }
      }
    }
    if (!known)
      return Error{ErrorCode::usage, path + ": unknown key \"" + item.name + "\"",
                   "did you mean \"" + nearest + "\"?"};
  }
  return {};
}

}  // namespace nanquest::trainer
