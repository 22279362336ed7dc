/// What this process tells: lines on stderr, and facts for `nanquest run`, which says at the end of the run
/// what was seen (nanquest/tell/reports.py says what they mean). Nothing here fails.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace nanquest::program {

/// "nanquest: LINE" on stderr.
void say(const std::string& line);

/// Adds to what this process has told; true if a launcher hears it. Of one thread at a time.
bool note(const nlohmann::json& facts);

/// The path as seen from the working directory, if it lies below it.
std::string shorter(const std::string& path);

/// A number of the environment, the first of these names that holds one; `otherwise` if none does.
int number_in_environment(std::initializer_list<const char*> names, int otherwise);

/// The directory for this process: several processes of one run with the same rank must not share files
/// (nanquest/base/run_directory.py, by the same marks). Throws std::exception if nothing can be written there.
std::string claim(const std::string& run_dir, int rank);

}  // namespace nanquest::program
