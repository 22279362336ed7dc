#include "replay/diff/runs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series.h"
#include "replay/diff/align.h"

namespace nanquest::diff {
namespace {

namespace fs = std::filesystem;

using FileOf = std::map<std::int64_t, std::map<std::int32_t, IncidentFiles>>;  // step -> rank

/// The last file of each step and rank; of a recording and an incident the recording.
FileOf files_of(const std::string& run) {
  FileOf files;
  for (const std::string& folder : {incidents_dir(run), recordings_dir(run)}) {
    std::error_code error;
    FileOf here;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      if (auto file = parse_incident_name(at->path().string())) {
        IncidentFiles& kept = here[file->step][file->rank];
        if (kept.snapshot.empty() || kept.attempt < file->attempt) kept = *std::move(file);
      }
    for (auto& [step, ranks] : here)
      for (auto& [rank, file] : ranks) files[step][rank] = file;
  }
  return files;
}

std::string listed(const FileOf& files) {
  std::string text;
  for (const auto& [step, ranks] : files) text += (text.empty() ? "" : ", ") + std::to_string(step);
  return text.empty() ? "none" : text;
}

Error nothing_in_common(const FileOf& left, const FileOf& right, std::optional<std::int64_t> step) {
  return {ErrorCode::usage,
          "no file of the same step" + (step ? " " + std::to_string(*step) : "") + ": A has steps " +
              listed(left) + "; B has " + listed(right),
          "record it in both: nanquest run --record-steps N"};
}

/// The first value of a group that differs in a bit, "" if none does. Values that one run alone has are left
/// out.
Result<std::string> first_difference(const SnapshotReader& a, const SnapshotReader& b,
                                     std::vector<NamedTensor> SnapshotDoc::*group) {
  std::map<std::string, const NamedTensor*> by_name;
  for (const NamedTensor& value : b.doc().*group) by_name.emplace(plain_path(value.name), &value);
  for (const NamedTensor& value : a.doc().*group) {
    const std::string name = plain_path(value.name);
    const auto other = by_name.find(name);
    if (other == by_name.end() || value.data.empty() || other->second->data.empty()) continue;
    const auto left = a.read_tensor(value.data), right = b.read_tensor(other->second->data);
    if (!left) return left.error();
    if (!right) return right.error();
    const bool same = left->dtype == right->dtype && left->bytes.size() == right->bytes.size() &&
                      std::memcmp(left->bytes.data(), right->bytes.data(), left->bytes.size()) == 0;
    if (!same) return name;
  }
  return std::string();
}

/// What differs at the start of a step is put into `runs`; false if nothing does.
Result<bool> states_part(const std::string& file_a, const std::string& file_b, Runs& runs) {
  const auto a = SnapshotReader::open(file_a), b = SnapshotReader::open(file_b);
  if (!a) return a.error();
  if (!b) return b.error();
  for (const auto& [group, into] : {std::pair{&SnapshotDoc::parameters, &Runs::parameter},
                                    {&SnapshotDoc::buffers, &Runs::buffer},
                                    {&SnapshotDoc::optimizer, &Runs::optimizer}}) {
    auto first = first_difference(*a, *b, group);
    if (!first) return first.error();
    runs.*into = std::move(first).value();
  }
  return !runs.parameter.empty() || !runs.buffer.empty() || !runs.optimizer.empty();
}

/// The ranks of step `number` of one run, whose files the other has as well.
std::vector<std::int32_t> ranks_in_both(const std::map<std::int32_t, IncidentFiles>& ranks,
                                        const FileOf& other_run, std::int64_t number) {
  std::vector<std::int32_t> both;
  if (const auto other = other_run.find(number); other != other_run.end())
    for (const auto& [rank, file] : ranks)
      if (other->second.contains(rank)) both.push_back(rank);
  return both;
}

void compare_losses(const std::string& run_a, const std::string& run_b, Runs& runs) {
  const auto read = [&](const std::string& run) {
    const auto tables = read_series(series_path(run, runs.rank));  // none: a run without a series
    return tables ? losses_of(*tables) : std::map<std::int64_t, double>();
  };
  const auto left = read(run_a), right = read(run_b);
  for (const auto& [step, loss] : left) {
    const auto other = right.find(step);
    if (other == right.end()) continue;
    if (std::bit_cast<std::uint64_t>(loss) != std::bit_cast<std::uint64_t>(other->second)) {
      runs.loss_step = step;
      runs.loss_a = loss, runs.loss_b = other->second;
      return;
    }
    ++runs.equal_losses;
  }
}

}  // namespace

Result<RankFiles> files_over_ranks(const std::string& run_a, const std::string& run_b,
                                   std::optional<std::int64_t> step) {
  const FileOf left = files_of(run_a), right = files_of(run_b);
  const auto paths = [](const std::map<std::int32_t, IncidentFiles>& ranks) {
    std::vector<std::string> files;
    for (const auto& [rank, file] : ranks) files.push_back(file.snapshot);
    return files;
  };
  for (auto at = left.rbegin(); at != left.rend(); ++at) {
    const auto other = right.find(at->first);
    if (other == right.end() || (step && at->first != *step)) continue;
    RankFiles found{paths(at->second), paths(other->second)};
    if (found.a.size() == found.b.size()) break;
    if (found.a.size() > 1 && found.b.size() > 1)
      return Error{ErrorCode::usage,
                   "A has files of " + std::to_string(found.a.size()) + " ranks and B of " +
                       std::to_string(found.b.size()) +
                       ": values are put together only against a run of one rank",
                   "compare each with a run of one rank"};
    return found;
  }
  return RankFiles{};
}

Result<std::vector<std::int32_t>> ranks_of_both(const std::string& run_a, const std::string& run_b,
                                                std::optional<std::int64_t> step) {
  const FileOf left = files_of(run_a), right = files_of(run_b);
  for (auto at = left.rbegin(); at != left.rend(); ++at) {
    if (step && at->first != *step) continue;
    if (std::vector<std::int32_t> ranks = ranks_in_both(at->second, right, at->first); !ranks.empty())
      return ranks;
  }
  return nothing_in_common(left, right, step);
}

Result<RunPair> compare_runs(const std::string& run_a, const std::string& run_b,
                             std::optional<std::int64_t> step, std::int32_t rank) {
  const FileOf left = files_of(run_a), right = files_of(run_b);
  RunPair result;
  Runs& runs = result.runs;
  runs.rank = rank;
  for (const auto& [number, ranks] : left) {
    if (step && number > *step) break;
    const auto other = right.find(number);
    if (other == right.end() || !ranks.contains(rank) || !other->second.contains(rank)) continue;
    result.a = ranks.at(rank).snapshot, result.b = other->second.at(rank).snapshot;
    runs.steps.push_back(number);
    if (runs.differs_before) continue;
    const auto part = states_part(result.a, result.b, runs);
    if (!part) return part.error();
    if (*part) runs.differs_before = number;
  }
  if (runs.steps.empty()) return nothing_in_common(left, right, step);
  compare_losses(run_a, run_b, runs);
  return result;
}

}  // namespace nanquest::diff
