#include "viewer/model/session.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "probe/trace/culprit.h"
#include "viewer/model/path_words.h"
#include "viewer/model/taster.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

}  // namespace

Session Session::nothing(const std::string& path, const std::string& why) {
  Session session;
  session.path_ = path;
  session.title_ = last_name(path);
  session.nothing_ = true;
  session.nothing_because_ = why;
  session.note_reading();
  return session;
}

Result<Session> Session::open(const std::string& path, Progress* progress) {
  if (fs::path(path).filename() == fs::path(manifest_path("")).filename() && is_file(path)) {
    const fs::path run = fs::path(path).parent_path();
    return open(run.empty() ? "." : run.string(), progress);
  }
  if (is_step_diff(path)) {
    Result<StepDiff> diff = read_step_diff(path);
    if (!diff) return diff.error();
    Session of_two = nothing(path, diff->headline());
    of_two.diff_ = std::make_shared<StepDiff>(std::move(diff).value());
    return of_two;
  }
  if (const std::string snapshot = snapshot_beside(path); !snapshot.empty() && is_file(path)) {
    if (is_file(snapshot) || is_file(verdict_path(snapshot))) return open(snapshot, progress);
    return Error{ErrorCode::bad_file, path + ": is what a replay left of " + snapshot + ", which is not here",
                 "give that snapshot or its run directory"};
  }
  Session session;
  session.path_ = path;
  session.title_ = last_name(path);
  session.progress_ = progress;
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  const bool has_verdict = is_file(verdict_path(path));
  if (!fs::exists(status) && !has_verdict)
    return Error{ErrorCode::bad_file, path + ": no such file or directory",
                 "give a run directory or a snapshot (…/incidents/step-*.h5)"};
  session.is_run_ = fs::is_directory(status);
  if (!session.is_run_ && !fs::is_regular_file(status) && !has_verdict)
    return Error{ErrorCode::bad_file, path + ": neither a directory nor a file",
                 "give a run directory or a snapshot"};
  if (Status loaded = session.load(); !loaded) {
    Result<RunFolder> folder =
        session.is_run_ ? read_run_folder(path, progress) : Result<RunFolder>(loaded.error());
    if (!folder) return loaded.error();
    Session of_runs = nothing(path, folder->headline());
    of_runs.folder_ = std::make_shared<RunFolder>(std::move(folder).value());
    return of_runs;
  }
  session.start_selection();
  session.progress_ = nullptr;
  return session;
}

std::vector<IncidentEntry>& Session::own_incidents() {
  auto own = std::make_shared<std::vector<IncidentEntry>>(*incidents_);
  std::vector<IncidentEntry>& list = *own;
  incidents_ = std::move(own);
  return list;
}

void Session::note_reading(bool incidents) {
  static std::atomic<std::uint64_t> readings{0};
  content_ = ++readings;
  if (incidents) reading_ = content_;
}

Status Session::load() {
  note_reading();
  incidents_ = std::make_shared<std::vector<IncidentEntry>>();
  manifest_.reset();
  manifest_error_.clear();
  if (!is_run_) {
    stamps_ = std::make_shared<Stamps>(
        stamps());  // before anything is read: what changes while it is read is read again
    IncidentEntry entry;
    if (auto named = parse_incident_name(path_)) entry.files = *named;
    entry.files.snapshot = path_;
    entry.snapshot = is_file(path_) ? Snapshot::here : Snapshot::lost;
    entry.files.verdict = is_file(verdict_path(path_)) ? verdict_path(path_) : "";
    entry.files.replay = is_file(replay_path(path_)) ? replay_path(path_) : "";
    own_incidents().push_back(entry);
    load_incident(0);
    if (incident_ == nullptr && !verdict_) {
      if (entry.snapshot == Snapshot::lost)
        return Error{ErrorCode::bad_file, incidents()[0].verdict_error, ""};
      Result<SnapshotReader> again = open_tasted(path_);
      return again ? Error{ErrorCode::bad_file, incident_error_, ""} : again.error();
    }
    IncidentFiles& files = own_incidents()[0].files;
    files.step = incident_ ? incident_->doc.step : verdict_->step;
    files.rank = incident_ ? incident_->doc.rank : verdict_->rank;
    rehearsed_ = std::make_shared<std::vector<RehearsedCurve>>(
        read_rehearsed(path_, files.step, files.rank, rehearsed_error_));
    return {};
  }
  Result<RunListing> listing = list_run(path_);
  if (!listing) return listing.error();
  listing_ = std::make_shared<RunListing>(std::move(listing).value());
  stamps_ = std::make_shared<Stamps>(stamps());  // as above
  if (!listing_->manifest.empty()) {
    Result<Manifest> manifest = read_manifest(path_);
    if (manifest)
      manifest_ = std::move(manifest).value();
    else
      manifest_error_ = manifest.error().text();
  }
  incidents_ = std::make_shared<std::vector<IncidentEntry>>(list_incidents(*listing_, manifest_));
  note_written();
  series_.begin_anew();
  load_series(0);
  return {};
}

std::vector<int> Session::opening_order() const {
  std::vector<int> order(incidents().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return opens_before(incidents()[static_cast<std::size_t>(a)], incidents()[static_cast<std::size_t>(b)]);
  });
  return order;
}

void Session::start_selection() {
  constexpr int kMostAsked = 16;
  std::vector<int> order = opening_order();
  // Which gate failed is in the file where no manifest says it.
  for (int asked = 0; asked < kMostAsked && !order.empty(); ++asked, order = opening_order()) {
    const IncidentEntry& first = incidents()[static_cast<std::size_t>(order.front())];
    if (!first.gate.empty() || first.silent || first.snapshot != Snapshot::here || !first.error.empty())
      break;
    load_incident(order.front());
  }
  const auto nothing = [&] { return incident_ == nullptr && !verdict_; };
  select_incident(order.empty() ? -1 : order.front());
  for (std::size_t i = 1; i < order.size() && nothing(); ++i) select_incident(order[i]);
  if (!order.empty() && nothing())
    select_incident(order.front());  // none can be read: reports the first
                                     // one's error
  if (const int maker = rank_that_made_it(); maker >= 0) select_incident(maker);
  keep_statistic();
}

/// For an incident where another rank's bad values arrived, and the step was not replayed: the row of a rank
/// that made its own, or -1. Notes what the files of these ranks say.
int Session::rank_that_made_it() {
  constexpr int kMostAsked = 8;
  if (incident_ == nullptr || verdict_ || arrived_by(incident_->doc).empty()) return -1;
  const IncidentFiles shown = entry()->files;
  int maker = -1, asked = 0;
  for (std::size_t row = 0; row < incidents().size() && asked < kMostAsked && !stopped(); ++row) {
    const IncidentFiles& files = incidents()[row].files;
    if (files.step != shown.step || files.rank == shown.rank || incidents()[row].snapshot != Snapshot::here)
      continue;
    ++asked;
    const Result<SnapshotReader> reader = open_tasted(files.snapshot);
    if (!reader) continue;
    own_incidents()[row].note(reader->doc());
    if (maker < 0 && reader->doc().culprit.op >= 0 && arrived_by(reader->doc()).empty())
      maker = static_cast<int>(row);
  }
  return maker;
}

/// Another history may lack the selected statistic. One without rows decides nothing.
void Session::keep_statistic() {
  if (!history().empty() && !history().has(selection_.statistic))
    selection_.statistic = history().first_available();
}

const History& Session::history() const {
  return series_.history().empty() && incident_ ? incident_->history : series_.history();
}

/// If incidents are known, series of ranks without incidents are not summarised.
void Session::load_series(std::int32_t rank) {
  note_reading(false);
  series_.read(*listing_, rank, incidents().empty(), progress_);
}

}  // namespace nanquest::viewer
