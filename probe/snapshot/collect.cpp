#include "probe/snapshot/collect.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/one_run.h"
#include "probe/snapshot/rank_row.h"
#include "probe/snapshot/reader.h"
#include "probe/snapshot/run_claim.h"
#include "probe/snapshot/run_dir.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;

/// Ends the collection; `collect_run` returns it.
struct Refusal {
  Error error;
};

[[noreturn]] void refuse(ErrorCode code, std::string message, std::string hint) {
  throw Refusal{{code, std::move(message), std::move(hint)}};
}

template <class T>
T must(Result<T> result) {
  if (!result) throw Refusal{result.error()};
  return std::move(result).value();
}

bool same_bytes(const fs::path& one, const fs::path& other) {
  std::ifstream a(one, std::ios::binary), b(other, std::ios::binary);
  if (fs::file_size(one) != fs::file_size(other)) return false;
  std::vector<char> x(std::size_t{1} << 20), y(x.size());
  while (a && b) {
    a.read(x.data(), static_cast<std::streamsize>(x.size()));
    b.read(y.data(), static_cast<std::streamsize>(y.size()));
    if (a.gcount() != b.gcount() || !std::equal(x.begin(), x.begin() + a.gcount(), y.begin())) return false;
  }
  return true;
}

bool ends_with(const fs::path& path, std::string_view ending) {
  return path.filename().string().ends_with(ending);
}

/// True for a snapshot, false for the files beside it.
bool is_snapshot(const fs::path& path) {
  return parse_incident_name(path.string()).has_value();
}

/// Which files are taken from where, and their new names.
class Collecting {
 public:
  Collecting(const std::vector<std::string>& from, std::string out) : out_(std::move(out)) {
    for (const std::string& source : from) add_source(source);
    if (files_.empty() && manifests_.empty())
      refuse(ErrorCode::bad_file, "nothing of a run was found", "give the run directories of its nodes");
  }

  Collected write() {
    check_one_run();
    claim_place();
    const fs::path part = out_.string() + ".partial-" + std::to_string(::getpid());
    try {
      fs::remove_all(part);
      fs::create_directories(part);
      for (const auto& [name, source] : files_) copy(source, part / name);
      check_copies(part);
      if (!manifests_.empty())
        if (const Status written = write_manifest(part.string(), joined_manifest()); !written)
          throw Refusal{written.error()};
      fs::rename(part, out_);
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(part, ignored);
      throw;
    }
    list_steps();
    result_.run_dir = out_.string();
    return std::move(result_);
  }

 private:
  void add_source(const fs::path& source) {
    std::error_code error;
    if (fs::is_regular_file(source, error)) {
      if (!parse_step_file(source.string()))
        refuse(ErrorCode::usage, source.string() + ": not called like a file of a step (step-00000131.r0.h5)",
               "give run directories, or files as the run named them");
      return add(fs::path("incidents") / source.filename(), source);
    }
    if (!fs::is_directory(source, error))
      refuse(ErrorCode::bad_file, source.string() + ": neither a directory nor a file",
             "look how it is spelt");
    const std::size_t before = files_.size() + manifests_.size();
    add_run(source);
    const bool recordings = fs::absolute(source).lexically_normal().filename() == "recordings";
    add_steps(source, recordings ? "recordings" : "incidents");
    if (files_.size() + manifests_.size() == before && known_.count(source.string()) == 0)
      refuse(ErrorCode::bad_file, source.string() + ": holds nothing of a run",
             "give the run directory that the training wrote");
  }

  /// Files of a run directory itself.
  void add_run(const fs::path& source) {
    if (const auto listing = list_run(source.string())) {
      if (!listing->manifest.empty()) {
        manifests_.emplace_back(source.string(), must(read_manifest(source.string())));
        known_.insert(source.string());
      }
      for (const SeriesFile& series : listing->series) {
        add(fs::path(series.path).filename(), series.path);
        const fs::path ranges = ranges_path(source.string(), series.rank);
        if (fs::exists(ranges)) add(ranges.filename(), ranges);
      }
    }
    for (const char* name : {kMetricsJsonl, kMetricsCsv})
      if (const fs::path path = source / name; fs::is_regular_file(path)) add(name, path);
    add_steps(incidents_dir(source.string()), "incidents");
    add_steps(recordings_dir(source.string()), "recordings");
    if (fs::exists(checkpoints_dir(source.string())))
      note(checkpoints_dir(source.string()) + " stays where it is: replay needs no checkpoint");
    for (const auto& entry : fs::directory_iterator(source)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && (name == "earlier" || name.starts_with("process-") || is_restart(name)))
        note(entry.path().string() +
             " stays where it is: a run of its own; give it by itself if it is meant");
    }
  }

  void add_steps(const fs::path& folder, const std::string& place) {
    if (!fs::is_directory(folder)) return;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.is_regular_file() && parse_step_file(entry.path().string()))
        add(fs::path(place) / entry.path().filename(), entry.path());
  }

  void add(const fs::path& name, const fs::path& source) {
    known_.insert(source.parent_path().string());
    known_.insert(source.parent_path().parent_path().string());
    const auto [there, is_new] = files_.emplace(name.string(), source);
    if (is_new) return;
    if (fs::equivalent(there->second, source)) return;
    if (same_bytes(there->second, source)) return note(source.string() + " is there twice, and the same");
    if (ends_with(source, ".first")) return choose_first(there->second, source);
    refuse(ErrorCode::usage,
           name.string() + " is in " + there->second.string() + " and in " + source.string() +
               ", and they differ",
           "two runs, or two attempts: collect each by itself");
  }

  /// Nodes without a shared run directory each elect a first rank: the one with fewer collectives before it
  /// was first (election.h).
  void choose_first(fs::path& there, const fs::path& other) {
    const auto a = read_rank_row(there.string()), b = read_rank_row(other.string());
    const auto place = [](const RankRow& r) {
      return std::make_tuple(r.standing != Standing::made_here, r.collectives < 0, r.collectives, r.rank);
    };
    const bool better = b && (!a || place(*b) < place(*a));
    const fs::path left = better ? there : other;
    if (better) there = other;
    note(left.string() + " is left out: rank " +
         std::to_string((better ? b : a) ? (better ? b : a)->rank : -1) + " of " + there.string() +
         " was before it");
  }

  /// Compares number of processes, settings and file names of every manifest and snapshot.
  void check_one_run() {
    std::optional<RunMark> first;
    std::map<std::string, std::set<std::int32_t>> writers;
    const auto agree = [&](RunMark mark) {
      if (first)
        if (const Status same = of_one_run(mark, *first); !same) throw Refusal{same.error()};
      if (!first || first->config.empty()) first = std::move(mark);
    };
    for (const auto& [source, manifest] : manifests_) {
      const auto& [begun, earliest] = manifests_.front();
      if (manifest.rank == earliest.rank && manifest.created != earliest.created)
        refuse(ErrorCode::usage,
               manifest_path(begun) + " and " + manifest_path(source) + " are both of rank " +
                   std::to_string(manifest.rank) + ", begun at " + earliest.created + " and " +
                   manifest.created + ": two runs",
               "give the directories of one run");
      agree({manifest_path(source), manifest.world_size, {}});
    }
    for (const auto& [name, source] : files_) {
      const auto named = parse_incident_name(name);
      if (!named) continue;
      const SnapshotReader file = must(SnapshotReader::open(source.string()));
      const SnapshotDoc& doc = file.doc();
      if (doc.step != named->step || doc.rank != named->rank)
        refuse(ErrorCode::bad_file,
               source.string() + " holds step " + std::to_string(doc.step) + " of rank " +
                   std::to_string(doc.rank) + ", which is not what it is called",
               "give it the name it had");
      agree({source.string(), doc.world_size, doc.config});
      writers[written_by(doc)].insert(doc.rank);
    }
    if (const std::string differ = different_writers(writers); !differ.empty())
      note("not all ranks were recorded by the same: " + differ);
    if (first) result_.world_size = first->world_size;
  }

  void claim_place() const {
    std::error_code error;
    if (!fs::exists(out_, error)) return;
    if (!fs::is_directory(out_, error) || !fs::is_empty(out_, error))
      refuse(ErrorCode::usage, out_.string() + " is there already, and nothing is written over",
             "give a directory that does not exist");
  }

  void copy(const fs::path& source, const fs::path& target) {
    fs::create_directories(target.parent_path());
    fs::copy_file(source, target);
    if (fs::file_size(target) != fs::file_size(source))
      refuse(ErrorCode::io, source.string() + " grew while it was copied",
             "wait until the training has ended, or collect again");
    ++result_.files;
    result_.bytes += fs::file_size(target);
  }

  void check_copies(const fs::path& part) {
    std::map<std::string, int> others;  ///< files that snapshots refer to
    for (const auto& [name, source] : files_) {
      if (!is_snapshot(name)) continue;
      const SnapshotReader copied = must(SnapshotReader::open((part / name).string()));
      std::set<std::string> needed;
      for (const FileReference& reference : copied.references()) needed.insert(reference.file);
      for (const std::string& file : needed) ++others[file];
      for (const TensorInfo& tensor : must(copied.tensors())) {
        if (tensor.elsewhere) continue;  // a file of another machine is not here
        if (const auto data = copied.read_tensor(tensor.path); !data)
          refuse(data.error().code,
                 source.string() + ": " + tensor.path + " is damaged (its checksum is another)",
                 "copy it again from where it was written, or leave it out");
      }
    }
    for (const auto& [file, snapshots] : others)
      note(file + " stays where it is: " + std::to_string(snapshots) +
           (snapshots == 1 ? " snapshot refers" : " snapshots refer") +
           " to it for frozen weights (nanquest-replay embed makes a copy that does not)");
  }

  Manifest joined_manifest() const {
    const auto lowest =
        std::min_element(manifests_.begin(), manifests_.end(),
                         [](const auto& a, const auto& b) { return a.second.rank < b.second.rank; });
    Manifest joined = lowest->second;
    for (auto at = manifests_.begin(); at != manifests_.end(); ++at) {
      if (at == lowest) continue;
      const Manifest& other = at->second;
      joined.incidents.insert(joined.incidents.end(), other.incidents.begin(), other.incidents.end());
      joined.forecasts.insert(joined.forecasts.end(), other.forecasts.begin(), other.forecasts.end());
      joined.replicas.insert(joined.replicas.end(), other.replicas.begin(), other.replicas.end());
      joined.removed.insert(joined.removed.end(), other.removed.begin(), other.removed.end());
    }
    const auto place = [](const auto& i) { return std::tie(i.step, i.rank, i.file); };
    std::sort(joined.incidents.begin(), joined.incidents.end(),
              [&](const auto& a, const auto& b) { return place(a) < place(b); });
    joined.incidents.erase(std::unique(joined.incidents.begin(), joined.incidents.end(),
                                       [&](const auto& a, const auto& b) { return place(a) == place(b); }),
                           joined.incidents.end());
    return joined;
  }

  void list_steps() {
    std::map<std::pair<bool, std::int64_t>, std::pair<std::set<std::int32_t>, std::set<std::int32_t>>> found;
    for (const auto& [name, source] : files_) {
      const auto file = parse_step_file(name);
      if (!file || file->rank < 0) continue;
      const bool recording = name.starts_with("recordings");
      if (is_snapshot(name)) found[{recording, file->step}].first.insert(file->rank);
      if (ends_with(name, ".row")) found[{recording, file->step}].second.insert(file->rank);
    }
    for (const auto& [key, ranks] : found) {
      CollectedStep step;
      std::tie(step.recording, step.step) = key;
      for (std::int32_t rank = 0; rank < result_.world_size; ++rank)
        (ranks.first.count(rank)    ? step.files
         : ranks.second.count(rank) ? step.rows
                                    : step.missing)
            .push_back(rank);
      result_.steps.push_back(std::move(step));
    }
  }

  void note(std::string line) { result_.notes.push_back(std::move(line)); }

  fs::path out_;
  std::map<std::string, fs::path> files_;  ///< name in the new directory -> source path
  std::vector<std::pair<std::string, Manifest>> manifests_;
  std::set<std::string> known_;  ///< folders in which something was found
  Collected result_;
};

std::string ranks_are(const std::vector<std::int32_t>& ranks, const char* one, const char* several) {
  return named_ranks(ranks) + (ranks.size() == 1 ? one : several);
}

}  // namespace

std::string ranks_in_words(const std::vector<std::int32_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < 8; ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text + (ranks.size() > 8 ? ", …" : "");
}

std::string named_ranks(const std::vector<std::int32_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranks_in_words(ranks);
}

std::string step_in_words(const CollectedStep& step, std::int32_t world_size) {
  std::string text = "step " + std::to_string(step.step) + (step.recording ? " (a recording): " : ": ");
  text += step.files.empty() ? "no rank's file"
                             : ranks_are(step.files, "", "") + " of " + std::to_string(world_size);
  if (!step.rows.empty()) text += "; " + ranks_are(step.rows, " left a row", " left rows");
  if (!step.missing.empty()) text += "; " + ranks_are(step.missing, " is not there", " are not there");
  return text;
}

Result<Collected> collect_run(const std::vector<std::string>& from, const std::string& out) try {
  if (from.empty())
    return Error{ErrorCode::usage, "no directory to collect from", "give those of the run's nodes"};
  fs::path target = fs::path(out).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  return Collecting(from, target.string()).write();
} catch (const Refusal& refusal) {
  return refusal.error;
} catch (const fs::filesystem_error& e) {
  return Error{ErrorCode::io, std::string(e.path1().string()) + ": " + e.code().message(),
               "nothing was left in " + out + "; mend it and collect again"};
} catch (const std::exception& e) {
  return Error{ErrorCode::io, out + ": " + e.what(), ""};
}

}  // namespace nanquest
