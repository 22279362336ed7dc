#include "replay/cause/replicas.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "probe/trace/collectives.h"
#include "probe/trace/graph.h"
#include "probe/trace/placement.h"
#include "probe/trace/spike_note.h"

namespace nanquest {
namespace {

std::string noted(const SnapshotDoc& doc, const char* key) {
  const auto entry = doc.environment.find(key);
  return entry == doc.environment.end() ? "" : entry->second;
}

/// Files that say that their weights are alike on the same ranks, including their own.
std::vector<ReplicaRank> meant_alike(const std::vector<ReplicaRank>& ranks) {
  std::map<std::string, std::vector<ReplicaRank>> by_note;
  for (const ReplicaRank& rank : ranks) {
    const std::string note = noted(rank.replayer->doc(), kReplicasKey);
    std::istringstream words(note);
    for (std::int32_t each = 0; words >> each;)
      if (each == rank.part->rank) by_note[note].push_back(rank);
  }
  std::vector<ReplicaRank> most;
  for (auto& [note, members] : by_note)
    if (members.size() > most.size()) most = std::move(members);
  return most;
}

/// Names that one of them excludes from comparison.
std::set<std::string> left_alone(const std::vector<ReplicaRank>& ranks) {
  std::set<std::string> names;
  for (const ReplicaRank& rank : ranks) {
    std::istringstream lines(noted(rank.replayer->doc(), kReplicasButKey));
    for (std::string name; std::getline(lines, name);) names.insert(name);
  }
  return names;
}

/// The weight as it was when the step began; undefined if the file does not hold it.
at::Tensor weight_of(const Replayer& replayer, const std::string& name) {
  const auto& all = replayer.doc().parameters;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const NamedTensor& each) { return each.name == name; });
  if (found == all.end() || found->data.empty()) return {};
  auto tensor = replayer.tensor(found->data);
  return tensor ? tensor->contiguous() : at::Tensor();
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         (a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

std::int64_t first_difference(const at::Tensor& a, const at::Tensor& b) {
  const auto* left = static_cast<const char*>(a.const_data_ptr());
  const auto* right = static_cast<const char*>(b.const_data_ptr());
  const std::size_t bytes = std::min(a.nbytes(), b.nbytes());
  const auto at = std::mismatch(left, left + bytes, right).first - left;
  return at / static_cast<std::int64_t>(a.element_size());
}

/// Fills in which ranks differ, from values that are not all the same.
void find_odd(const std::vector<at::Tensor>& values, ReplicasInfo& info) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& members) {
      return same_bytes(values[members.front()], values[i]);
    });
    if (group == groups.end())
      groups.push_back({i});
    else
      group->push_back(i);
  }
  const auto most = std::max_element(groups.begin(), groups.end(),
                                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
  info.known = 2 * most->size() > values.size();
  info.odd.clear();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!info.known || !same_bytes(values[most->front()], values[i])) info.odd.push_back(info.ranks[i]);
  for (const at::Tensor& value : values)
    if (!same_bytes(values[most->front()], value)) {
      info.element = first_difference(values[most->front()], value);
      return;
    }
}

bool same_ops_until(const SnapshotDoc& one, const SnapshotDoc& other, std::int32_t op) {
  const auto count = static_cast<std::size_t>(op) + 1;
  return one.ops.size() >= count && other.ops.size() >= count &&
         std::equal(one.ops.begin(), one.ops.begin() + static_cast<std::ptrdiff_t>(count), other.ops.begin(),
                    [](const OpRow& a, const OpRow& b) {
                      return a.name == b.name && a.overload == b.overload &&
                             a.written_count == b.written_count;
                    });
}

/// The recorded results of `op`: empty if hashes are missing.
std::vector<StatsRow> recorded(const SnapshotDoc& doc, std::int32_t op) {
  const TraceGraph graph(doc);
  std::vector<StatsRow> rows;
  for (const TensorId row : graph.written(OpId{op})) {
    const StatsRow* stats = row ? graph.stats(row) : nullptr;
    if (!stats || !stats->has_hash) return {};
    rows.push_back(*stats);
  }
  return rows;
}

bool any_bad(const std::vector<StatsRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const StatsRow& row) { return row.non_finite() > 0; });
}

bool same_hashes(const std::vector<StatsRow>& one, const std::vector<StatsRow>& other) {
  return !one.empty() && one.size() == other.size() &&
         std::equal(one.begin(), one.end(), other.begin(), [](const StatsRow& a, const StatsRow& b) {
           return a.has_hash && b.has_hash && a.hash == b.hash;
         });
}

bool can_be_hashed(const ReplicaRank& rank) {
  const SnapshotDoc& doc = rank.replayer->doc();
  return doc.basis == "every_output" && doc.hash_kind == HashKind::contents && !rank.verified->elsewhere;
}

/// The ranks computed on the same kind of machine with the same setup. The machine here does not matter,
/// since its result must equal that of one of them.
bool computed_alike(const SnapshotDoc& one, const SnapshotDoc& other) {
  const auto of = [](const SnapshotDoc& doc) {
    auto entries = doc.environment;
    std::erase_if(entries, [](const auto& entry) {
      return tells_of_ranks(entry.first) || tells_of_spike(entry.first);
    });
    return entries;
  };
  return of(one) == of(other);
}

}  // namespace

std::optional<ReplicasInfo> compare_replicas(const std::vector<ReplicaRank>& all) {
  const std::vector<ReplicaRank> ranks = meant_alike(all);
  if (ranks.size() < 2) return std::nullopt;
  const std::set<std::string> others = left_alone(ranks);
  ReplicasInfo info;
  for (const ReplicaRank& rank : ranks) info.ranks.push_back(rank.part->rank);
  for (const NamedTensor& weight : ranks.front().replayer->doc().parameters) {
    if (others.count(weight.name) > 0) continue;
    std::vector<at::Tensor> values;
    values.reserve(ranks.size());
    for (const ReplicaRank& rank : ranks) values.push_back(weight_of(*rank.replayer, weight.name));
    if (std::any_of(values.begin(), values.end(), [&](const at::Tensor& value) {
          return !value.defined() || value.scalar_type() != values.front().scalar_type() ||
                 value.sizes() != values.front().sizes();
        }))
      continue;
    ++info.compared;
    if (std::all_of(values.begin(), values.end(),
                    [&](const at::Tensor& value) { return same_bytes(value, values.front()); }))
      continue;
    if (info.different++ > 0) continue;
    info.tensor = weight.name;
    find_odd(values, info);
  }
  if (info.compared == 0) return std::nullopt;
  return info;
}

std::optional<AloneInfo> why_alone(const std::vector<ReplicaRank>& ranks, const RankPart* first,
                                   const std::optional<ReplicasInfo>& replicas) {
  if (!first) return std::nullopt;
  AloneInfo alone;
  alone.rank = first->rank;
  if (replicas && replicas->different > 0) {
    if (!replicas->known || replicas->odd != std::vector<std::int32_t>{first->rank}) return std::nullopt;
    return alone;
  }
  const auto bad = std::find_if(ranks.begin(), ranks.end(),
                                [&](const ReplicaRank& rank) { return rank.part->rank == first->rank; });
  if (bad == ranks.end() || !can_be_hashed(*bad)) return std::nullopt;
  const std::int32_t op = bad->verified->first_mismatch;
  const SnapshotDoc& doc = bad->replayer->doc();
  if (op == kNone || op != first->op || first->origin != Origin::op || !any_bad(recorded(doc, op)))
    return std::nullopt;
  RunOptions options;
  options.hash = true;
  options.stop_after = op;
  const RunResult run = bad->replayer->run(options);
  const OpOutcome& here = run.ops[static_cast<std::size_t>(op)];
  if (!here.ran || here.substituted) return std::nullopt;
  for (const ReplicaRank& other : ranks) {
    if (other.part->rank == first->rank || other.part->local || !can_be_hashed(other) ||
        !computed_alike(doc, other.replayer->doc()))
      continue;
    const std::int32_t elsewhere = other.verified->first_mismatch;
    if ((elsewhere != kNone && elsewhere <= op) || !same_ops_until(doc, other.replayer->doc(), op)) continue;
    if (!same_hashes(here.written, recorded(other.replayer->doc(), op))) continue;
    alone.why = Alone::hardware;
    alone.index = op;
    alone.op = first->name;
    alone.module = first->module;
    alone.witness = other.part->rank;
    return alone;
  }
  return std::nullopt;
}

}  // namespace nanquest
