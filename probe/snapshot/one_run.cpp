#include "probe/snapshot/one_run.h"

#include <algorithm>
#include <regex>

namespace nanquest {
namespace {

/// What of a setting is the run's, whichever rank or machine says it.
std::string without_place(const std::string& key, const std::string& value) {
  if (key != "command") return value;
  // Of a worker that Ray started port, id and hour are its own, and the cluster the run's.
  static const std::regex cluster("--cluster-id=\\S+");
  std::smatch found;
  if (value.find("ray/_private/workers/") != std::string::npos && std::regex_search(value, found, cluster))
    return found.str();
  static const std::regex local_rank("\\s--local[-_]rank(=|\\s)\\d+");
  const std::string plain = std::regex_replace(value, local_rank, "");
  return plain.substr(std::min(plain.find(' '), plain.size()));
}

}  // namespace

Status of_one_run(const RunMark& one, const RunMark& other) {
  const std::string hint = "give the files of one run";
  if (one.world_size != other.world_size)
    return Error{ErrorCode::usage,
                 one.path + " is of a run of " + std::to_string(one.world_size) + " processes, " +
                     other.path + " of one of " + std::to_string(other.world_size),
                 hint};
  for (const auto& [key, value] : one.config) {
    const auto there = other.config.find(key);
    if (there == other.config.end() || without_place(key, there->second) == without_place(key, value))
      continue;
    std::string message = one.path;
    message.append(" and ").append(other.path).append(" are of two runs: their ").append(key);
    message.append(" is \"").append(value).append("\" and \"").append(there->second).append("\"");
    return Error{ErrorCode::usage, message, hint};
  }
  return {};
}

}  // namespace nanquest
