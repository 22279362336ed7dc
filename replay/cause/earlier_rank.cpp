#include "replay/cause/earlier_rank.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "probe/snapshot/run_dir.h"
#include "replay/cause/diagnose.h"
#include "replay/trace/replayer.h"

namespace nanquest {
namespace {

constexpr std::size_t kMaxEarlierFiles = 32;

/// Files of earlier steps beside `snapshot`: latest step first, within a step this rank first; the last
/// attempt of each.
std::vector<IncidentFiles> earlier_files(const std::string& snapshot, std::int32_t own) {
  const auto self = parse_incident_name(snapshot);
  if (!self) return {};
  std::map<std::tuple<std::int64_t, bool, std::int32_t>, IncidentFiles> found;
  const std::filesystem::path parent = std::filesystem::path(snapshot).parent_path();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent.empty() ? "." : parent, error)) {
    auto other = parse_incident_name(entry.path().string());
    if (!other || other->step >= self->step) continue;
    other->snapshot = entry.path().string();
    IncidentFiles& best = found[{-other->step, other->rank != own, other->rank}];
    if (best.snapshot.empty() || other->attempt > best.attempt) best = *other;
  }
  std::vector<IncidentFiles> files;
  for (const auto& [place, file] : found)
    if (files.size() < kMaxEarlierFiles) files.push_back(file);
  return files;
}

/// The tensor of that name is bad when the step ends, or an update of it with the step's values makes it so.
bool leaves_bad(const Replayer& replayer, const std::string& name) {
  const SnapshotDoc& doc = replayer.doc();
  RunOptions options;
  for (std::size_t i = 0; i < doc.parameters.size() && i < doc.gradients.size(); ++i)
    if (doc.parameters[i].name == name && doc.gradients[i] != kNone) options.keep.push_back(doc.gradients[i]);
  const RunResult run = replayer.run(options);
  for (const at::Tensor& gradient : run.kept)
    if (gradient.defined() && gradient.is_floating_point() && !gradient.isfinite().all().item<bool>())
      return true;
  const TraceGraph graph(doc);
  for (const SlotId slot : ids_of<Slot>(doc)) {
    if (get(doc, slot).name != name || graph.writes(slot).empty()) continue;
    const TraceGraph::Write& last = graph.writes(slot).back();
    const auto entry = static_cast<std::size_t>(last.entry);
    const std::vector<StatsRow>& rows = run.ops.at(last.op.index()).written;
    if (entry < rows.size() && rows[entry].non_finite() > 0) return true;
  }
  return false;
}

}  // namespace

std::optional<EarlierRank> find_earlier_rank(const Case& own, const std::string& snapshot) {
  const auto origin = from_word<Origin>(own.culprit().origin);
  const std::string& name = own.culprit().tensor_name;
  if ((origin != Origin::parameter && origin != Origin::buffer) || name.empty()) return std::nullopt;
  std::vector<RankPart> parts;
  std::int64_t step = -1;
  for (const IncidentFiles& file : earlier_files(snapshot, own.doc().rank)) {
    if (!parts.empty() && file.step != step) break;
    auto replayer = Replayer::open(file.snapshot);
    if (!replayer || replayer->doc().step != file.step ||
        replayer->doc().world_size != own.doc().world_size || !leaves_bad(*replayer, name))
      continue;
    if (file.rank == own.doc().rank) return std::nullopt;
    step = file.step;
    parts.push_back(rank_part(make_case(*replayer), file.snapshot));
  }
  const RankPart* first = first_part(parts);
  if (!first) return std::nullopt;
  return EarlierRank{step, *first};
}

}  // namespace nanquest
