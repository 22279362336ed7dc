/// What this process reports: lines on stderr, and facts for `nanquest run`, which summarises them at the end
/// of the run (nanquest/tell/reports.py defines them). Nothing here fails.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace nanquest::program {

/// "nanquest: LINE" on stderr.
void say(const std::string& line);

/// Adds to the facts of this process; true if a launcher reads them. One thread at a time.
bool note(const nlohmann::json& facts);

/// The path relative to the working directory, if it is below it.
std::string shorter(const std::string& path);

/// A number from the environment: the first of these names that holds one; `otherwise` if none does.
int number_in_environment(std::initializer_list<const char*> names, int otherwise);

/// The directory for this process: several processes of one run with the same rank must not share files
/// (nanquest/base/run_directory.py uses the same marks). Throws std::exception if nothing can be written there.
std::string claim(const std::string& run_dir, int rank);

}  // namespace nanquest::program
