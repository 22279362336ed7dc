// What a session reads of an incident: its verdict and snapshot.
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "probe/snapshot/frames.h"
#include "replay/verdict/root.h"
#include "viewer/model/path_words.h"
#include "viewer/model/session.h"
#include "viewer/model/taster.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

/// Approximate cost in bytes of reading a snapshot's tables: their share of the file is unknown.
constexpr std::uint64_t kIncidentCost = 8 << 20;

}  // namespace

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

/// For what the verdict blames, otherwise the recording.
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

/// Rows beside the file of a single process would belong to another run, so they are not read.
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
  if (is_run_ && entry.files.rank != series_.rank()) load_series(entry.files.rank);
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
