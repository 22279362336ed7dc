/// Checks a configuration file before it is believed.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// Reads the TOML keys of `path` and returns `usage` for the first that `app` has no option for, naming the
/// nearest one that it has. Keys stand at the top level, with dashes or underscores. `bad_file` if the file
/// can't be read.
Status check_config_keys(const CLI::App& app, const std::string& path);

/// Fewest insertions, deletions and replacements that turn `a` into `b` (Levenshtein).
std::size_t edit_distance(const std::string& a, const std::string& b);

}  // namespace nanquest::trainer
