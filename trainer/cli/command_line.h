/// A list of settings as options of a command line and as keys of a configuration file.
#pragma once

#include <CLI/CLI.hpp>

#include <set>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"

namespace nanquest::trainer {

/// Thrown out of CLI::App::parse where a value is not understood by the part that it is for.
struct Refused {
  Error error;
};

/// Makes an option of `app` of every setting, with its default, help and group; parsing writes into the
/// parts. `list` must outlive the parsing.
void add_options(CLI::App& app, const SettingList& list);

/// Takes each "--set KEY=VALUE" out of `arguments` and puts "--KEY=VALUE" behind the others, where it wins;
/// `keys` gets the KEYs. `usage` for a KEY that is no key of `list`, naming the nearest one that is, and for
/// one without a value.
Status take_changes(const SettingList& list, std::vector<std::string>& arguments,
                    std::set<std::string>& keys);

/// Reads the TOML keys of `path` and returns `usage` for the first that is no key of `list`,
/// naming the nearest one that is. Keys stand at the top level, with dashes or underscores. `bad_file` if the
/// file can't be read.
Status check_config_file(const SettingList& list, const std::string& path);

}  // namespace nanquest::trainer
