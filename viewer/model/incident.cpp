#include "viewer/model/incident.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "probe/trace/culprit.h"
#include "probe/trace/walk.h"
#include "replay/verdict/json.h"
#include "viewer/model/taster.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

/// As manifests have them, in the order of Gate.
constexpr std::string_view kGateWords[] = {"ok", "scale_overflow", "non_finite", "spike"};

bool same_trace(const SnapshotDoc& a, const SnapshotDoc& b) {
  const auto same_op = [](const OpRow& x, const OpRow& y) {
    return x.name == y.name && x.overload == y.overload;
  };
  return a.step == b.step && a.rank == b.rank && a.tensors.size() == b.tensors.size() &&
         a.written == b.written &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
}

/// What replay left beside a recording; nothing if there is no such file, it can't be read, or it belongs to
/// another recording. `replayed`: there is a verdict, so the file should exist.
std::optional<SnapshotReader> replay_of(const SnapshotReader& recorded, const std::string& path,
                                        bool replayed, std::string& error) {
  const SnapshotDoc& doc = recorded.doc();
  if (path.empty()) {
    if (doc.basis == "survivors" && replayed)
      error = replay_path(recorded.path()) +
              ": is not here, so values of ops are not known; nanquest-replay SNAPSHOT makes it again";
    return std::nullopt;
  }
  Result<SnapshotReader> replay = open_tasted(path);
  if (!replay) {
    error = replay.error().text();
    return std::nullopt;
  }
  if (doc.basis == "survivors" && !replay->doc().ops.empty() && !same_trace(doc, replay->doc())) {
    error = path + ": is the replay of another recording; make it again with nanquest-replay SNAPSHOT";
    return std::nullopt;
  }
  return std::move(replay).value();
}

/// The tables of a recording; with the statistics and the culprit of its replay if it was recorded without.
SnapshotDoc told(const SnapshotReader& recorded, const std::optional<SnapshotReader>& replay) {
  SnapshotDoc doc = recorded.doc();
  if (doc.basis != "survivors" || !replay || replay->doc().ops.empty()) return doc;
  const SnapshotDoc& found = replay->doc();
  doc.stats = found.stats;
  doc.culprit = found.culprit;
  for (std::size_t i = 0; i < doc.tensors.size(); ++i) doc.tensors[i].stats = found.tensors[i].stats;
  for (std::size_t i = 0; i < doc.ops.size(); ++i) doc.ops[i].flags = found.ops[i].flags;
  return doc;
}

/// The step in fp32 and fp64, if the file has it: files of older versions don't.
std::optional<Replayed> runs_of(const std::optional<SnapshotReader>& replay, std::size_t ops,
                                std::string& error) {
  if (!replay) return std::nullopt;
  Result<std::optional<Replayed>> runs = read_replayed(*replay, ops);
  if (!runs) error = runs.error().text();
  return runs ? std::move(runs).value() : std::nullopt;
}

/// Intended infinities are those of the verdict, whatever the recording marked as intended.
void take_intended(SnapshotDoc& doc, const Verdict& verdict) {
  std::vector<std::int32_t>& intended = doc.culprit.suppressed;
  if (verdict.blame.tried) {
    intended.clear();
    for (const Blamed& one : verdict.blame.intended)
      if (one.index >= 0 && one.index < static_cast<std::int64_t>(doc.ops.size()))
        intended.push_back(static_cast<std::int32_t>(one.index));
  }
  std::erase(intended, static_cast<std::int32_t>(verdict.culprit.index));
  for (const Blamed& one : verdict.blame.set) std::erase(intended, static_cast<std::int32_t>(one.index));
}

/// The op that the verdict blames, found by experiment, if the recording alone blamed another one.
SnapshotDoc blamed(SnapshotDoc doc, const std::optional<Verdict>& verdict) {
  if (!verdict || !verdict->found) return doc;
  take_intended(doc, *verdict);
  const std::int64_t op = verdict->culprit.index;
  const bool there = op >= 0 && op < static_cast<std::int64_t>(doc.ops.size()) &&
                     doc.ops[static_cast<std::size_t>(op)].name == verdict->culprit.op;
  if (!there || op == doc.culprit.op) return doc;
  const TraceGraph graph(doc);
  std::vector<std::int32_t> lineage;
  for (const OpId step : Walk(graph).path_to_harm(OpId{op})) lineage.push_back(step.row());
  doc.culprit.lineage = std::move(lineage);
  doc.culprit.op = static_cast<std::int32_t>(op);
  doc.culprit.tensor_name = verdict->culprit.tensor;
  return doc;
}

}  // namespace

OpenIncident::OpenIncident(SnapshotReader opened, const std::string& replay_file,
                           const std::optional<Verdict>& verdict)
    : reader(std::move(opened)),
      replay(replay_of(reader, replay_file, verdict.has_value(), replay_error)),
      doc(blamed(told(reader, replay), verdict)),
      replayed(runs_of(replay, doc.ops.size(), replay_error)),
      trace(doc),
      history(doc.history) {
  Result<std::vector<StoredTensor>> list = list_tensors(reader);
  if (list)
    tensors = std::move(list).value();
  else
    tensors_error = list.error().text();
  const auto batch = std::ranges::find(tensors, "batch", &StoredTensor::group);
  if (batch != tensors.end()) sample_tensor_ = batch->path;
  if (!replay) return;
  Result<std::vector<StoredTensor>> more = list_tensors(*replay);
  if (!more) return;  // an error of this file was noted when its columns were read
  for (StoredTensor& tensor : *more)
    if (tensor.group == kReplayedGroup) tensors.push_back(std::move(tensor));
}

const SnapshotReader& OpenIncident::reader_of(const StoredTensor& tensor) const {
  return replay && tensor.group == kReplayedGroup ? *replay : reader;
}

bool OpenIncident::holds(const std::string& path) const {
  return std::ranges::find(tensors, path, &StoredTensor::path) != tensors.end();
}

std::string IncidentEntry::standing() const {
  const std::string found = cause.empty() ? "" : cause + ", ";
  if (snapshot == Snapshot::never_written) return found + "no snapshot was written";
  if (snapshot == Snapshot::lost) return found + "its snapshot is not here";
  if (!error.empty()) return cause.empty() ? "can't be read" : found + "its snapshot can't be read";
  if (!verdict_error.empty()) return "its verdict can't be read";
  return cause.empty() ? "not replayed yet" : cause;
}

std::string IncidentEntry::known_text() const {
  const char* what = gate == "non_finite"       ? " was not finite"
                     : gate == "scale_overflow" ? " overflowed the loss scale"
                     : gate == "spike"          ? " had a spike of the loss"
                     : gate == "ok"             ? " holds damage that no gate saw"
                                                : " went wrong";
  return "Step " + std::to_string(files.step) + what + (summary.empty() ? "" : ": " + summary);
}

void IncidentEntry::note(const SnapshotDoc& recorded) {
  if (gate.empty()) gate = kGateWords[static_cast<int>(recorded.gate) & 3];
  if (summary.empty() && recorded.culprit.op >= 0) summary = describe_culprit(recorded);
}

Gate gate_of(const IncidentEntry& entry) {
  const auto found = std::ranges::find(kGateWords, entry.gate);
  return found == std::end(kGateWords) ? Gate::non_finite : static_cast<Gate>(found - std::begin(kGateWords));
}

std::vector<IncidentEntry> list_incidents(const RunListing& listing,
                                          const std::optional<Manifest>& manifest) {
  std::vector<IncidentEntry> out;
  std::map<std::string, std::size_t> row_of;  // by the snapshot's name
  const auto add = [&](const IncidentFiles& files, Snapshot snapshot) {
    if (!files.snapshot.empty()) row_of[fs::path(files.snapshot).filename().string()] = out.size();
    out.emplace_back();
    out.back().files = files;
    out.back().snapshot = snapshot;
  };
  for (const IncidentFiles& files : listing.incidents) add(files, Snapshot::here);
  for (const IncidentFiles& files : listing.lost) add(files, Snapshot::lost);
  for (const ManifestIncident& known : manifest ? manifest->incidents : std::vector<ManifestIncident>{}) {
    const std::string name = fs::path(known.file).filename().string();
    if (name.empty() || !row_of.count(name)) {
      IncidentFiles files = parse_incident_name(name).value_or(IncidentFiles{});
      files.step = known.step;
      files.rank = known.rank;
      if (!name.empty()) files.snapshot = (fs::path(incidents_dir(listing.run_dir)) / name).string();
      add(files, name.empty() ? Snapshot::never_written : Snapshot::lost);
    }
    IncidentEntry& entry = name.empty() ? out.back() : out[row_of[name]];
    entry.gate = known.gate;
    const std::string step = "step " + std::to_string(known.step) + ": ";  // which stands beside it
    entry.summary = known.summary.starts_with(step) ? known.summary.substr(step.size()) : known.summary;
  }
  for (IncidentEntry& entry : out) {
    if (entry.files.verdict.empty()) continue;
    const Result<Verdict> verdict = read_verdict(entry.files.verdict);
    if (verdict)
      entry.note(*verdict);
    else
      entry.verdict_error = verdict.error().text();
  }
  std::stable_sort(out.begin(), out.end(), [](const IncidentEntry& a, const IncidentEntry& b) {
    return std::tie(a.files.step, a.files.rank, a.files.attempt) <
           std::tie(b.files.step, b.files.rank, b.files.attempt);
  });
  return out;
}

void IncidentEntry::note(const Verdict& verdict) {
  cause = verdict.found ? word(verdict.cause) : "nothing harmful";
  confidence = verdict.confidence;
  silent = verdict.found && verdict.culprit.value == BadValue::silent;
  known = !verdict.found ? Known::harmless : verdict.cause == Label::unknown ? Known::unknown : Known::cause;
}

bool opens_before(const IncidentEntry& a, const IncidentEntry& b) {
  const auto severity = [](const IncidentEntry& e) {
    return e.silent || e.gate == "ok" ? 3 : e.gate == "scale_overflow" ? 2 : e.gate == "spike" ? 1 : 0;
  };
  return std::pair(severity(a), a.known) < std::pair(severity(b), b.known);
}

}  // namespace nanquest::viewer
