#include "probe/snapshot/one_run.h"

#include <algorithm>
#include <regex>

#include "probe/snapshot/collect.h"

namespace nanquest {
namespace {

/// The part of a setting that is the same on all ranks and machines of a run.
std::string without_place(const std::string& key, const std::string& value) {
  if (key != "command") return value;
  // For a worker started by Ray: port, id and hour differ by worker, the cluster is the run's.
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

std::string written_by(const SnapshotDoc& doc) {
  std::string text = doc.writer.substr(0, doc.writer.find(','));
  const auto torch = doc.environment.find("torch_version");
  if (torch != doc.environment.end()) text.append(", torch ").append(torch->second);
  return text;
}

std::string different_writers(const std::map<std::string, std::set<std::int32_t>>& ranks_by_writer) {
  if (ranks_by_writer.size() < 2) return "";
  std::string text;
  for (const auto& [writer, ranks] : ranks_by_writer) {
    if (!text.empty()) text += "; ";
    text.append(writer).append(": ").append(named_ranks({ranks.begin(), ranks.end()}));
  }
  return text;
}

}  // namespace nanquest
