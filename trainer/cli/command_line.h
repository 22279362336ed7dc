/// A list of settings as options of a command line and as keys of a configuration file.
#pragma once

#include <CLI/CLI.hpp>

#include <set>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"

namespace nanquest::trainer {

/// Thrown from CLI::App::parse if the part that a value belongs to does not accept it.
struct Refused {
  Error error;
};

/// Makes an option of `app` of every setting, with its default, help and group; parsing writes into the
/// parts. `list` must outlive the parsing.
void add_options(CLI::App& app, const SettingList& list);

/// Takes each "--set KEY=VALUE" out of `arguments` and appends "--KEY=VALUE", where it wins; `keys` gets the
/// KEYs. `usage` for a KEY that is no key of `list`, naming the most similar one, and for one without a
/// value.
Status take_changes(const SettingList& list, std::vector<std::string>& arguments,
                    std::set<std::string>& keys);

/// Reads the TOML keys of `path` and returns `usage` for the first that is no key of `list`, naming the most
/// similar one. Keys are at the top level, with dashes or underscores. `bad_file` if the file can't be read.
Status check_config_file(const SettingList& list, const std::string& path);

}  // namespace nanquest::trainer
