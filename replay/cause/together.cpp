#include "replay/cause/together.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "probe/snapshot/collect.h"
#include "probe/snapshot/one_run.h"
#include "probe/snapshot/rank_row.h"
#include "probe/trace/births.h"
#include "probe/trace/collectives.h"
#include "probe/trace/graph.h"
#include "probe/trace/op_facts.h"
#include "replay/blame/neutral.h"
#include "replay/cause/diagnose.h"
#include "replay/cause/ranks.h"
#include "replay/cause/replicas.h"
#include "replay/trace/together.h"

namespace nanquest {
namespace {

constexpr std::size_t kMostRankRows = 65536;
/// Time limit for finding blame on one rank: another rank's share can't be tried there.
constexpr double kSecondsPerRank = 20;
/// Number of suspects of one rank that are made harmless together, and how many of them are named.
constexpr std::size_t kMostPlaces = 48, kNamedPlaces = 3;

/// A rank under examination.
struct Examined {
  const OpenRank* open = nullptr;
  Case examined;
  RankPart part;
  VerifyResult verified;
};

Follows follows_of(const CollectivePart& part) {
  if (!part.matched) return Follows::unknown;
  switch (part.matched->match) {
    case trace::Match::exact:
      return Follows::exact;
    case trace::Match::within:
      return Follows::within;
    case trace::Match::differs:
      break;
  }
  return Follows::differs;
}

CollectiveAtRank at_rank(const Examined& rank, const CollectivePart& part) {
  CollectiveAtRank at;
  at.rank = rank.part.rank;
  at.index = part.op;
  at.module = rank.examined.module_of(part.op);
  at.gave_bad = part.gave_bad;
  at.got_bad = part.got_bad;
  at.follows = follows_of(part);
  if (!part.matched) return at;
  at.elements = part.matched->elements;
  at.different = part.matched->different;
  at.first = part.matched->first;
  at.recorded = part.matched->recorded;
  at.computed = part.matched->computed;
  return at;
}

/// Whether the inputs of the collective are the recorded ones: nothing before it came out otherwise.
bool came_back_until(const VerifyResult& verified, std::int32_t op) {
  return verified.first_mismatch == kNone || verified.first_mismatch >= op;
}

CollectiveInfo collective_info(const CollectiveRun& run, const std::vector<Examined>& ranks) {
  CollectiveInfo info;
  info.op = run.name;
  info.why_not = run.why_not;
  info.ranks = run.ranks;
  info.missing = run.missing;
  if (run.call) {
    info.group = run.call->group;
    info.reduction = name_of(run.call->reduction);
  }
  info.follows = run.parts.empty() ? Follows::unknown : Follows::exact;
  bool inputs_are_known = true;
  for (const Examined& rank : ranks) {
    const auto part = run.parts.find(rank.part.rank);
    if (part == run.parts.end()) continue;
    info.at.push_back(at_rank(rank, part->second));
    info.follows = std::max(info.follows, info.at.back().follows);
    if (const auto& matched = part->second.matched; matched && matched->distance > info.distance) {
      info.distance = matched->distance;
      info.bound = matched->bound;
    }
    inputs_are_known = inputs_are_known && came_back_until(rank.verified, part->second.op);
  }
  if (info.follows == Follows::differs && !inputs_are_known) {
    info.follows = Follows::unknown;
    info.why_not = "the step does not come back bit for bit before it, so what was given is not known";
    for (CollectiveAtRank& at : info.at) at.follows = Follows::unknown;
  }
  return info;
}

/// Collectives that carry bad values from ranks that have them to ranks that don't, from the first bad one
/// on.
std::vector<RankHop> follow(const std::vector<CollectiveInfo>& collectives, std::set<std::int32_t> have,
                            const RankPart* first) {
  std::vector<RankHop> path;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    RankHop hop;
    hop.collective = static_cast<std::int64_t>(i);
    for (const CollectiveAtRank& at : collectives[i].at) {
      const bool after =
          !first || at.rank != first->rank || came_from_outside(first->origin) || at.index >= first->op;
      if (have.count(at.rank) && at.gave_bad && after) hop.from.push_back(at.rank);
      if (!have.count(at.rank) && at.got_bad) hop.to.push_back(at.rank);
    }
    if (hop.from.empty() || hop.to.empty()) continue;
    have.insert(hop.to.begin(), hop.to.end());
    path.push_back(std::move(hop));
  }
  return path;
}

bool holds_bad(const at::Tensor& value) {
  return value.defined() && value.is_floating_point() && !value.isfinite().all().item<bool>();
}

std::vector<RankShown> shown_at_end(const std::vector<Examined>& ranks, const TogetherRun& run) {
  std::vector<RankShown> all;
  for (const Examined& rank : ranks) {
    const auto result = run.results.find(rank.part.rank);
    if (result == run.results.end() || result->second.kept.empty()) continue;
    const SnapshotDoc& doc = rank.examined.doc();
    const std::vector<at::Tensor>& kept = result->second.kept;
    RankShown shown;
    shown.rank = rank.part.rank;
    shown.loss = holds_bad(kept.front());
    for (std::size_t i = 1; i < kept.size(); ++i)
      if (holds_bad(kept[i]))
        shown.gradients.push_back(doc.parameters.size() + 1 == kept.size() ? doc.parameters[i - 1].name
                                                                           : "row " + std::to_string(i - 1));
    if (shown.loss || !shown.gradients.empty()) all.push_back(std::move(shown));
  }
  return all;
}

/// The first bad value, of an op or from outside.
std::optional<Suspect> suspect_of(const Examined& rank) {
  if (rank.part.op == kNone) return std::nullopt;
  Suspect suspect;
  suspect.op = OpId{rank.part.op};
  suspect.kinds = {true, true};
  if (!came_from_outside(rank.part.origin)) return suspect;
  const TraceGraph& graph = rank.examined.graph();
  for (const TraceGraph::Argument& argument : graph.arguments(suspect.op))
    if (graph.slot(argument.row) && graph.bad(argument.row)) {
      suspect.row = argument.row;
      return suspect;
    }
  return std::nullopt;
}

std::string what_is_changed(const Examined& rank, const std::vector<Suspect>& set) {
  std::string text = "the bad values of ";
  const std::size_t named = set.size() > kNamedPlaces + 1 ? kNamedPlaces : set.size();
  for (std::size_t i = 0; i < named; ++i) {
    const std::int32_t op = set[i].op.row();
    if (i > 0) text += i + 1 == set.size() ? " and " : ", ";
    if (i == 0 && rank.part.origin != Origin::op) {
      const std::string kind(spoken(rank.part.origin));
      text += "the " + kind;
      if (!rank.part.tensor.empty() && rank.part.tensor != kind) text += " " + rank.part.tensor;
    } else {
      text += rank.examined.op_text(op) + ", op " + std::to_string(op);
    }
  }
  if (named < set.size()) text += " and " + std::to_string(set.size() - named) + " more operations";
  return text + (rank.part.origin == Origin::op || set.size() > 1 ? ", of rank " : " of rank ") +
         std::to_string(rank.part.rank);
}

/// Suspects that still make bad values in a run: not results of a collective, nor the copies around it, nor a
/// constant (the infinities of a mask). Nothing if there are only those of `set`.
std::vector<Suspect> next_makers(const TraceGraph& graph, const RunResult& run,
                                 const std::vector<Suspect>& set) {
  std::vector<Suspect> makers = makers_in(graph, run);
  std::erase_if(makers, [&](const Suspect& maker) {
    const OpRow& op = graph.op(maker.op);
    return is_collective(op.name) || is_fsdp_copy(op.name) || bad_constants(graph.doc(), maker.op).infinite ||
           std::any_of(set.begin(), set.end(), [&](const Suspect& s) { return s.op == maker.op; });
  });
  sort_by_time(graph, makers);
  for (Suspect& maker : makers) maker.kinds = {true, true};
  return makers;
}

/// All ranks, with `set` of one of them made harmless.
TogetherRun run_healed(const std::vector<Examined>& ranks, const Examined& from,
                       const std::vector<Suspect>& set, Neutral neutral) {
  std::vector<Lane> lanes;
  for (const Examined& rank : ranks) {
    lanes.push_back({rank.part.rank, &rank.open->replayer, {}, &rank == &from});
    if (&rank == &from)
      for (const Suspect& suspect : set)
        neutralise(rank.examined.graph(), suspect, neutral, lanes.back().edit);
  }
  return run_together(lanes, GoOn::with_computed);
}

/// The first bad value made harmless; and, if the rank then makes others (a pole's derivative), these too.
RanksProof prove(const std::vector<Examined>& ranks, const RankPart& first, const TogetherRun& recorded) {
  RanksProof proof;
  const bool harm = std::any_of(recorded.results.begin(), recorded.results.end(),
                                [](const auto& r) { return !r.second.finite(); });
  const auto from =
      std::find_if(ranks.begin(), ranks.end(), [&](const Examined& e) { return e.part.rank == first.rank; });
  const auto suspect = from == ranks.end() ? std::nullopt : suspect_of(*from);
  if (!harm) proof.why_not = "neither loss nor gradients are bad";
  if (harm && !suspect) proof.why_not = "no operation read the bad value";
  if (!proof.why_not.empty()) return proof;
  proof.change = what_is_changed(*from, {*suspect});
  for (const Neutral neutral : {Neutral::above, Neutral::zero, Neutral::one}) {
    std::vector<Suspect> set = {*suspect};
    while (set.size() <= kMostPlaces) {
      const TogetherRun run = run_healed(ranks, *from, set, neutral);
      proof.tried = run.results.size() == ranks.size();
      if (!proof.tried) break;
      proof.healed = std::all_of(run.results.begin(), run.results.end(),
                                 [](const auto& r) { return r.second.finite(); });
      if (proof.healed) {
        proof.change = what_is_changed(*from, set);
        return proof;
      }
      const auto more = next_makers(from->examined.graph(), run.results.at(first.rank), set);
      if (more.empty()) break;
      set.insert(set.end(), more.begin(), more.end());
    }
  }
  if (!proof.tried) proof.why_not = "the ranks could not be run together";
  return proof;
}

/// Where the first bad value arrived that no rank here made.
void find_where_it_came_from(const std::vector<Examined>& ranks, RanksVerdict& v) {
  for (std::size_t i = 0; i < v.collectives.size(); ++i) {
    const CollectiveInfo& c = v.collectives[i];
    const auto gave = [](const CollectiveAtRank& at) { return at.gave_bad; };
    const auto got = [](const CollectiveAtRank& at) { return at.got_bad; };
    if (std::none_of(c.at.begin(), c.at.end(), got)) continue;
    std::set<std::int32_t> have;
    for (const CollectiveAtRank& at : c.at)
      if (at.got_bad) have.insert(at.rank);
    if (std::any_of(c.at.begin(), c.at.end(), gave)) continue;
    if (c.missing.empty() && c.follows != Follows::unknown && c.follows != Follows::differs) {
      v.finding = RanksFinding::collective;
      v.made_by = static_cast<std::int64_t>(i);
    } else {
      v.finding = RanksFinding::unknown;
      v.came_from = c.missing.empty() ? c.op + ", which could not be done here"
                                      : named_ranks(c.missing) +
                                            (c.missing.size() == 1 ? ", whose file is not here, by "
                                                                   : ", whose files are not here, by ") +
                                            c.op;
    }
    v.path = follow(v.collectives, have, nullptr);
    return;
  }
  const bool harmed =
      std::any_of(ranks.begin(), ranks.end(), [](const Examined& e) { return e.part.harmed; });
  if (!harmed && v.shown.empty()) return;
  v.finding = RanksFinding::unknown;
  v.came_from = "no rank whose file is here, and by no collective that was seen";
}

}  // namespace

Status one_step(const std::vector<OpenRank>& ranks) {
  const std::string hint = "give one file of each rank, all of one step: run/incidents/step-00000131.r*.h5";
  if (ranks.empty() || (ranks.size() < 2 && ranks.front().replayer.doc().world_size < 2))
    return Error{ErrorCode::usage, "ranks are replayed together where a run has two or more", hint};
  std::map<std::int32_t, std::string> seen;
  const SnapshotDoc& first = ranks.front().replayer.doc();
  for (const OpenRank& rank : ranks) {
    const SnapshotDoc& doc = rank.replayer.doc();
    if (doc.step != first.step)
      return Error{ErrorCode::usage,
                   rank.file + " is of step " + std::to_string(doc.step) + ", " + ranks.front().file +
                       " of step " + std::to_string(first.step),
                   hint};
    if (const Status same = of_one_run({rank.file, doc.world_size, doc.config},
                                       {ranks.front().file, first.world_size, first.config});
        !same)
      return same.error();
    if (const auto [there, is_new] = seen.emplace(doc.rank, rank.file); !is_new)
      return Error{ErrorCode::usage,
                   there->second + " and " + rank.file + " are both of rank " + std::to_string(doc.rank),
                   hint};
  }
  return {};
}

RanksVerdict judge_together(const std::vector<OpenRank>& open,
                            const std::function<void(const std::string&)>& say) {
  const auto doing = [&](const std::string& what) {
    if (say) say(what);
  };
  std::vector<Examined> ranks;
  for (const OpenRank& one : open) {
    const std::string name = "rank " + std::to_string(one.replayer.doc().rank);
    doing(name + ": who is to blame");
    Case made = make_case(one.replayer, {.seconds = kSecondsPerRank});
    RankPart part = rank_part(made, one.file);
    doing(name + ": the step as recorded");
    ranks.push_back({&one, std::move(made), std::move(part), verify(one.replayer)});
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const auto& a, const auto& b) { return a.part.rank < b.part.rank; });
  RanksVerdict v;
  v.step = ranks.front().examined.doc().step;
  v.world_size = ranks.front().examined.doc().world_size;
  std::vector<RankPart> parts;
  std::vector<Lane> lanes;
  std::map<std::string, std::set<std::int32_t>> writers;
  for (const Examined& rank : ranks) {
    writers[written_by(rank.examined.doc())].insert(rank.part.rank);
    v.files.push_back({rank.part.rank, rank.open->file, reproduction_of(rank.verified)});
    parts.push_back(rank.part);
    lanes.push_back({rank.part.rank, &rank.open->replayer, {}});
  }
  v.writers = different_writers(writers);
  const auto rows = rank_rows_beside(ranks.front().open->file, kMostRankRows);
  for (std::int32_t rank = 0; rank < v.world_size && v.missing.size() < 1024; ++rank)
    if (std::none_of(parts.begin(), parts.end(), [&](const RankPart& p) { return p.rank == rank; }))
      (rows.count(rank) ? v.rows : v.missing).push_back(rank);
  const std::int32_t named = rows.empty() ? -1 : rows.begin()->second.first;
  if (std::find(v.missing.begin(), v.missing.end(), named) != v.missing.end()) v.rows_name = named;
  doing("all ranks together, as recorded");
  const TogetherRun recorded = run_together(lanes, GoOn::as_recorded);
  for (const CollectiveRun& run : recorded.collectives) v.collectives.push_back(collective_info(run, ranks));
  v.shown = shown_at_end(ranks, recorded);
  const RankPart* first = first_part(parts);
  std::vector<ReplicaRank> replicas;
  replicas.reserve(ranks.size());
  for (const Examined& rank : ranks) replicas.push_back({&rank.open->replayer, &rank.part, &rank.verified});
  v.replicas = compare_replicas(replicas);
  v.alone = why_alone(replicas, first, v.replicas);
  if (!first) {
    find_where_it_came_from(ranks, v);
    return v;
  }
  v.finding = RanksFinding::rank;
  v.first = culprit_of(*first);
  for (const Examined& rank : ranks)
    if (rank.part.rank == first->rank)
      v.value = from_word<BadValue>(rank.examined.culprit().value).value_or(BadValue::none);
  v.path = follow(v.collectives, {first->rank}, first);
  doing("all ranks together, with the first bad value made harmless");
  v.proof = prove(ranks, *first, recorded);
  return v;
}

}  // namespace nanquest
