#include "viewer/model/incident.h"

#include <algorithm>
#include <utility>

#include "replay/verdict/json.h"

namespace nanquest::viewer {
namespace {

bool same_trace(const SnapshotDoc& a, const SnapshotDoc& b) {
  const auto same_op = [](const OpRow& x, const OpRow& y) {
    return x.name == y.name && x.overload == y.overload;
  };
  return a.step == b.step && a.rank == b.rank && a.tensors.size() == b.tensors.size() &&
         a.written == b.written &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
}

/// The doc of a recording; with the statistics and the culprit of its replay if it was recorded without.
SnapshotDoc told(const SnapshotDoc& recorded, const std::string& replay_file, std::string& error) {
  SnapshotDoc doc = recorded;
  if (doc.basis != "survivors" || replay_file.empty()) return doc;
  const Result<SnapshotReader> replay = SnapshotReader::open(replay_file);
  if (!replay) {
    error = replay.error().text();
    return doc;
  }
  const SnapshotDoc& found = replay->doc();
  if (found.ops.empty()) return doc;  // written by a version that kept no trace
  if (!same_trace(doc, found)) {
    error = replay_file + ": is the replay of another recording; make it again with nanquest-replay SNAPSHOT";
    return doc;
  }
  doc.stats = found.stats;
  doc.culprit = found.culprit;
  for (std::size_t i = 0; i < doc.tensors.size(); ++i) doc.tensors[i].stats = found.tensors[i].stats;
  for (std::size_t i = 0; i < doc.ops.size(); ++i) doc.ops[i].flags = found.ops[i].flags;
  return doc;
}

}  // namespace

OpenIncident::OpenIncident(SnapshotReader opened, const std::string& replay_file)
    : reader(std::move(opened)),
      doc(told(reader.doc(), replay_file, replay_error)),
      trace(doc),
      history(doc.history) {
  Result<std::vector<StoredTensor>> list = list_tensors(reader);
  if (list)
    tensors = std::move(list).value();
  else
    tensors_error = list.error().text();
}

std::string IncidentEntry::standing() const {
  if (!error.empty()) return cause.empty() ? "can't be read" : cause + ", its snapshot can't be read";
  if (!verdict_error.empty()) return "its verdict can't be read";
  return cause.empty() ? "not replayed yet" : cause;
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
