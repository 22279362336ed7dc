// What a session reads: series, verdicts, snapshots.
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "probe/snapshot/frames.h"
#include "probe/snapshot/series.h"
#include "replay/verdict/root.h"
#include "viewer/model/path_words.h"
#include "viewer/model/session.h"
#include "viewer/model/taster.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

/// About what the tables of a snapshot cost to be read, in bytes: nobody knows how much of the file they are.
constexpr std::uint64_t kIncidentCost = 8 << 20;

}  // namespace

/// A run without it has no headroom, and nothing is missing.
void Session::load_headroom(std::int32_t rank) {
  headroom_error_.clear();
  const std::string path = ranges_path(path_, rank);
  std::error_code ec;
  if (!fs::exists(path, ec)) {
    headroom_ = std::make_shared<Headroom>();
    return;
  }
  const Status well = tasted(Taste::ranges, path);
  const Result<std::vector<PlaceRanges>> ranges =
      well ? read_ranges(path) : Result<std::vector<PlaceRanges>>(well.error());
  if (ranges)
    headroom_ = std::make_shared<Headroom>(*ranges);
  else
    headroom_error_ = ranges.error().text();
}

/// Goes on where the last reading ended, as far as the file is still the one that was read. Null, and
/// `series_error_` says why, if it can't be read.
std::shared_ptr<const History> Session::read_shown_series(const std::string& path, std::uint64_t bytes) {
  const bool whole = series_place_.rows == 0;
  if (progress_ != nullptr && whole) progress_->expect(2 * bytes);  // to be read, and to be looked at
  // Rows that come later are not tasted: by then the file has been read, and it changes every second.
  const Status well = whole ? tasted(Taste::series, path) : Status();
  Result<SeriesNews> news = well ? read_series_on(path, series_place_) : Result<SeriesNews>(well.error());
  if (news && news->appended) {
    auto grown = std::make_shared<History>(*series_);
    if (grown->append(news->tables)) return grown;
    series_place_ = {};  // a step was repeated: its rows stand elsewhere now
    return read_shown_series(path, bytes);
  }
  if (progress_ != nullptr && whole) progress_->advance(news ? bytes : 2 * bytes);
  if (news) return std::make_shared<const History>(news->tables, progress_, whole ? bytes : 0);
  series_error_ = news.error().text();
  return nullptr;
}

void Session::load_series(std::int32_t rank) {
  note_reading(false);
  load_headroom(rank);
  series_error_.clear();
  words_.clear();
  const std::vector<SeriesFile>& files = listing_->series;
  // While its file can't be read, as when it is being written, a series stays; those of another rank don't.
  if (files.empty() || rank != series_rank_) {
    series_ = std::make_shared<History>();
    series_place_ = {};
  }
  if (files.empty()) return;
  const SeriesFile* chosen = &files.front();
  for (const SeriesFile& file : files)
    if (file.rank == rank) chosen = &file;
  series_rank_ = rank;
  for (const SeriesFile& file : files) {
    if (&file != chosen && !incidents().empty()) continue;
    if (stopped()) return;
    std::error_code ec;
    const std::uintmax_t size = fs::file_size(file.path, ec);
    const std::uint64_t bytes = ec ? 0 : size;
    if (&file == chosen) {
      const std::shared_ptr<const History> read = read_shown_series(file.path, bytes);
      words_.push_back(word_of(file.rank, read ? *read : History()));
      words_.back().error = series_error_;
      if (read) series_ = read;
      continue;
    }
    if (progress_ != nullptr) progress_->expect(2 * bytes);
    const Status well = tasted(Taste::series, file.path);
    const Result<std::vector<SeriesTable>> tables =
        well ? read_series(file.path) : Result<std::vector<SeriesTable>>(well.error());
    if (progress_ != nullptr) progress_->advance(tables ? bytes : 2 * bytes);
    words_.push_back(word_of(file.rank, tables ? History(*tables, progress_, bytes) : History()));
    if (!tables) words_.back().error = tables.error().text();
  }
}

void Session::load_verdict(IncidentEntry& entry) {
  verdict_.reset();
  entry.verdict_error.clear();
  if (entry.files.verdict.empty()) return;
  Result<Verdict> verdict = read_verdict(entry.files.verdict);
  if (!verdict) {
    entry.verdict_error = verdict.error().text();
    return;
  }
  verdict_ = std::move(verdict).value();
  take_root(*verdict_, entry.files.snapshot);
  entry.note(*verdict_);
}

/// Of what the verdict blames, else of what the recording does.
void Session::load_source(const IncidentEntry& entry) {
  culprit_stack_.clear();
  if (verdict_ && verdict_->found)
    culprit_stack_ = verdict_->culprit.stack;
  else if (!verdict_ && incident_ && incident_->doc.culprit.op != kNone)
    culprit_stack_ = program_stack(incident_->doc, OpId{incident_->doc.culprit.op});
  std::error_code ec;
  const fs::file_time_type written = fs::last_write_time(entry.files.snapshot, ec);
  source_ = read_source(program_frame(culprit_stack_), ec ? fs::file_time_type::max() : written);
}

/// Rows beside the file of one process would be another run's: nobody looks for them.
void Session::load_ranks(const IncidentEntry& entry) {
  constexpr std::size_t most = 65536;
  rank_rows_ = std::make_shared<std::map<std::int32_t, RankRow>>();
  const bool many = (manifest_ && manifest_->world_size > 1) ||
                    (incident_ && incident_->doc.world_size > 1) || (verdict_ && verdict_->ranks);
  if (many)
    rank_rows_ =
        std::make_shared<std::map<std::int32_t, RankRow>>(rank_rows_beside(entry.files.snapshot, most));
}

void Session::load_incident(int row) {
  note_reading();
  incident_.reset();
  incident_error_.clear();
  verdict_.reset();
  rehearsed_ = std::make_shared<std::vector<RehearsedCurve>>();
  rehearsed_error_.clear();
  rank_rows_ = std::make_shared<std::map<std::int32_t, RankRow>>();
  culprit_stack_.clear();
  source_ = {};
  replay_command_.clear();
  forget_tensor();
  if (row < 0 || row >= static_cast<int>(incidents().size()) || stopped()) return;
  IncidentEntry& entry = own_incidents()[static_cast<std::size_t>(row)];
  load_verdict(entry);
  rehearsed_ = std::make_shared<std::vector<RehearsedCurve>>(
      read_rehearsed(entry.files.snapshot, entry.files.step, entry.files.rank, rehearsed_error_));
  replay_command_ = command_to_replay(entry.files.snapshot);
  if (is_run_ && entry.files.rank != series_rank_) load_series(entry.files.rank);
  if (entry.snapshot != Snapshot::here) {
    incident_error_ = entry.snapshot == Snapshot::lost
                          ? entry.files.snapshot + ": is not here (copy it from where the run was written)"
                          : "no snapshot of step " + std::to_string(entry.files.step) + " was written";
    load_ranks(entry);
    return load_source(entry);
  }
  if (progress_ != nullptr) progress_->expect(kIncidentCost);
  Result<SnapshotReader> reader = open_tasted(entry.files.snapshot);
  entry.error = reader ? "" : reader.error().text();
  if (reader) entry.note(reader->doc());
  if (reader)
    incident_ = std::make_shared<const OpenIncident>(std::move(reader).value(), entry.files.replay, verdict_);
  else
    incident_error_ = entry.error;
  load_ranks(entry);
  load_source(entry);
  if (progress_ != nullptr) progress_->advance(kIncidentCost);
}

}  // namespace nanquest::viewer
