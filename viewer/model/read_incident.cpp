#include "viewer/model/read_incident.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "probe/snapshot/frames.h"
#include "replay/verdict/json.h"
#include "replay/verdict/root.h"
#include "viewer/model/path_words.h"
#include "viewer/model/taster.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

/// Approximate cost in bytes of reading a snapshot's tables: their share of the file is unknown.
constexpr std::uint64_t kIncidentCost = 8 << 20;

std::optional<Verdict> read_verdict_of(IncidentEntry& entry) {
  entry.verdict_error.clear();
  if (entry.files.verdict.empty()) return std::nullopt;
  Result<Verdict> verdict = read_verdict(entry.files.verdict);
  if (!verdict) {
    entry.verdict_error = verdict.error().text();
    return std::nullopt;
  }
  take_root(*verdict, entry.files.snapshot);
  entry.note(*verdict);
  return std::move(verdict).value();
}

void open_snapshot(ReadIncident& incident, IncidentEntry& entry, Progress* progress) {
  if (entry.snapshot != Snapshot::here) {
    incident.error = entry.snapshot == Snapshot::lost
                         ? entry.files.snapshot + ": is not here (copy it from where the run was written)"
                         : "no snapshot of step " + std::to_string(entry.files.step) + " was written";
    return;
  }
  if (progress != nullptr) progress->expect(kIncidentCost);
  Result<SnapshotReader> reader = open_tasted(entry.files.snapshot);
  entry.error = incident.error = reader ? "" : reader.error().text();
  if (reader) {
    entry.note(reader->doc());
    incident.open =
        std::make_shared<const OpenIncident>(std::move(reader).value(), entry.files.replay, incident.verdict);
  }
  if (progress != nullptr) progress->advance(kIncidentCost);
}

/// Rows beside the file of a single process would belong to another run, so they are not read.
void read_ranks(ReadIncident& incident, const IncidentEntry& entry, bool many_ranks) {
  constexpr std::size_t most = 65536;
  if (many_ranks || (incident.open && incident.open->doc.world_size > 1) ||
      (incident.verdict && incident.verdict->ranks))
    incident.rank_rows = rank_rows_beside(entry.files.snapshot, most);
}

/// For what the verdict blames, otherwise the recording.
void read_source_of(ReadIncident& incident, const IncidentEntry& entry) {
  const std::optional<Verdict>& verdict = incident.verdict;
  if (verdict && verdict->found)
    incident.stack = verdict->culprit.stack;
  else if (!verdict && incident.open && incident.open->doc.culprit.op != kNone)
    incident.stack = program_stack(incident.open->doc, OpId{incident.open->doc.culprit.op});
  std::error_code ec;
  const fs::file_time_type written = fs::last_write_time(entry.files.snapshot, ec);
  incident.source = read_source(program_frame(incident.stack), ec ? fs::file_time_type::max() : written);
}

}  // namespace

ReadIncident read_incident(IncidentEntry& entry, bool of_run, bool many_ranks, Progress* progress) {
  ReadIncident incident;
  incident.verdict = read_verdict_of(entry);
  incident.replay_command = command_to_replay(entry.files.snapshot);
  open_snapshot(incident, entry, progress);
  if (!of_run && !incident.nothing()) {
    entry.files.step = incident.open ? incident.open->doc.step : incident.verdict->step;
    entry.files.rank = incident.open ? incident.open->doc.rank : incident.verdict->rank;
  }
  incident.rehearsed =
      read_rehearsed(entry.files.snapshot, entry.files.step, entry.files.rank, incident.rehearsed_error);
  read_ranks(incident, entry, many_ranks);
  read_source_of(incident, entry);
  return incident;
}

}  // namespace nanquest::viewer
