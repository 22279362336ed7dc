#include "replay/cause/ranks.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <vector>

#include "probe/snapshot/collect.h"
#include "probe/snapshot/rank_row.h"
#include "probe/snapshot/run_dir.h"
#include "probe/trace/collectives.h"
#include "probe/trace/culprit.h"
#include "probe/trace/placement.h"
#include "replay/cause/diagnose.h"
#include "replay/cause/earlier_rank.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

constexpr std::size_t kMaxFiles = 32, kMaxRows = 65536;

/// Files of the same step beside `snapshot`, by rank; the last attempt of each.
std::map<std::int32_t, std::string> siblings(const std::string& snapshot, std::int32_t own) {
  std::map<std::int32_t, std::pair<int, std::string>> found;
  const auto self = parse_incident_name(snapshot);
  if (!self) return {};
  const std::filesystem::path parent = std::filesystem::path(snapshot).parent_path();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent.empty() ? "." : parent, error)) {
    const auto other = parse_incident_name(entry.path().string());
    if (!other || other->step != self->step || other->rank == own) continue;
    auto& best = found[other->rank];
    if (other->attempt > best.first) best = {other->attempt, entry.path().string()};
  }
  std::map<std::int32_t, std::string> files;
  for (const auto& [rank, file] : found) files.emplace(rank, file.second);
  return files;
}

/// "parameter fc.weight was bad when the step began".
std::string brought_in(Origin origin, const std::string& tensor, const std::string& part) {
  const std::string kind(spoken(origin));
  return kind + (tensor.empty() || tensor == kind ? "" : " " + tensor) +
         (part.empty() ? "" : " (" + part + ")") + " was bad when the step began";
}

/// Where another rank's first bad value came from.
std::string first_in_words(const RankCulprit& first) {
  const std::string op = op_text(first);
  if (first.origin == Origin::op)
    return (first.op.empty() ? std::string("a bad value from outside") : op) + " (" + first.file + ").";
  return "its " + brought_in(first.origin, first.tensor, first.part) + " (" +
         (first.op.empty() ? "" : "first read by " + op + "; ") + first.file + ").";
}

using Rows = std::map<std::int32_t, RankRow>;

/// "Ranks 2, 3, … left a row instead of a file: 12 got it by a collective, 1 had a bad loss."
std::string rows_in_words(const Ranks& ranks, const Rows& rows) {
  constexpr std::pair<Standing, const char*> kinds[] = {
      {Standing::made_here, "had something bad of its own"},
      {Standing::loss_bad, "had a bad loss"},
      {Standing::arrived, "got it by a collective"},
      {Standing::unknown, "had bad gradients, nobody knows whence"}};
  std::string text, kinds_text;
  for (const auto& [standing, words] : kinds) {
    const auto count = std::count_if(
        rows.begin(), rows.end(), [kind = standing](const auto& row) { return row.second.standing == kind; });
    if (count > 0) kinds_text += (kinds_text.empty() ? ": " : ", ") + std::to_string(count) + " " + words;
  }
  text = std::string(rows.size() > 1 ? " Ranks " : " Rank ") + ranks_in_words(ranks.rows) +
         " left a row instead of a file" + kinds_text + ".";
  const std::int32_t first = rows.begin()->second.first;
  if (!ranks.first && std::find(ranks.missing.begin(), ranks.missing.end(), first) != ranks.missing.end())
    text += " They name rank " + std::to_string(first) + " as the first, whose file is not here.";
  return text;
}

std::string in_words(const Ranks& ranks, const RankPart& own, const std::vector<RankPart>& others,
                     const Rows& rows) {
  const std::string self = "rank " + std::to_string(own.rank) + " of " + std::to_string(ranks.world_size);
  std::string text;
  if (own.local) {
    text = own.origin == Origin::op
               ? "The bad value was made on " + self + "."
               : "This is " + self + ": its " + brought_in(own.origin, own.tensor, own.part) + ".";
    if (ranks.first && ranks.first->step >= 0)
      text += " Step " + std::to_string(ranks.first->step) + " of rank " + std::to_string(ranks.first->rank) +
              " left the same " + std::string(spoken(own.origin)) +
              " bad, and no file shows a step of this rank that did: it will have come from "
              "there between the steps, as averaged weights do. There: ";
    else if (ranks.first && ranks.first->rank != own.rank)
      text += " Rank " + std::to_string(ranks.first->rank) + " had one of its own before: ";
  } else if (!own.harmed) {
    text = "This is " + self + "; nothing bad was found in its own step.";
    if (ranks.first) text += " Rank " + std::to_string(ranks.first->rank) + " had something: ";
  } else {
    text = "This is " + self + "; what it gave to " + ranks.arrived_by + " (op " +
           std::to_string(ranks.arrived_index) + ") was finite, the bad value arrived by it.";
    const bool all_finite =
        ranks.missing.empty() && ranks.rows.empty() &&
        std::none_of(others.begin(), others.end(), [](const RankPart& p) { return p.local; });
    if (ranks.first)
      text += " Rank " + std::to_string(ranks.first->rank) + " was first: ";
    else if (all_finite && !others.empty())
      text +=
          " Every rank gave finite numbers: it was made by the collective itself (a sum beyond the format's "
          "range).";
  }
  if (ranks.first && ranks.first->rank != own.rank) text += first_in_words(*ranks.first);
  std::vector<std::int32_t> got;
  for (const RankPart& p : others)
    if (p.harmed && !p.local) got.push_back(p.rank);
  if (own.local && !got.empty())
    text +=
        std::string(got.size() > 1 ? " Ranks " : " Rank ") + ranks_in_words(got) + " got it by a collective.";
  if (!ranks.missing.empty())
    text += std::string(ranks.missing.size() > 1 ? " Ranks " : " Rank ") + ranks_in_words(ranks.missing) +
            " left no file of this step here.";
  if (!rows.empty()) text += rows_in_words(ranks, rows);
  return text;
}

}  // namespace

RankPart rank_part(const Case& c, const std::string& file) {
  RankPart part;
  part.rank = c.doc().rank;
  part.file = file;
  part.harmed = !c.culprit().value.empty();
  part.local = part.harmed;
  part.origin = from_word<Origin>(c.culprit().origin).value_or(Origin::op);
  part.tensor = c.culprit().tensor_name;
  part.op = c.op_index();
  const OpRow* op = c.op();
  if (!op) return part;
  part.name = op->name;
  part.module = c.module_of(part.op);
  part.part = part_of(c.doc(), part.tensor);
  part.pass = pass_of(c.doc(), OpId{part.op});
  part.local = part.harmed && arrived_by(c.doc()).empty();
  for (std::int32_t i = 0; i < part.op; ++i) part.collectives += is_collective(c.row(i)->name);
  const auto sent = std::find_if(c.doc().ops.begin(), c.doc().ops.end(), [](const OpRow& row) {
    return row.name == "c10d::send" || row.name.starts_with("c10d::recv");
  });
  part.fed = sent != c.doc().ops.end() && sent->name != "c10d::send";
  return part;
}

const RankPart* first_part(const std::vector<RankPart>& parts) {
  const auto time = [](const RankPart& p) {
    return std::tuple(p.fed && p.origin == Origin::input, p.collectives, p.op, p.rank);
  };
  const RankPart* first = nullptr;
  for (const RankPart& p : parts)
    if (p.local && (!first || time(p) < time(*first))) first = &p;
  return first;
}

RankCulprit culprit_of(const RankPart& part) {
  return {.rank = part.rank,
          .op = part.name,
          .module = part.module,
          .index = part.op,
          .file = part.file,
          .origin = part.origin,
          .tensor = part.tensor,
          .part = part.part,
          .pass = part.pass};
}

std::optional<Ranks> find_ranks(const Case& own_case, const std::string& snapshot) try {
  const SnapshotDoc& doc = own_case.doc();
  if (doc.world_size <= 1) return std::nullopt;
  Ranks ranks;
  ranks.world_size = doc.world_size;
  const RankPart own = rank_part(own_case, snapshot);
  ranks.local = own.local;
  if (own.harmed && !own.local) {
    ranks.arrived_by = own.name;
    ranks.arrived_index = own.op;
  }
  const auto files = siblings(snapshot, doc.rank);
  std::vector<RankPart> others;
  for (const auto& [rank, file] : files) {
    if (others.size() == kMaxFiles) break;
    auto replayer = Replayer::open(file);
    if (!replayer) continue;
    const Case other = make_case(*replayer);
    if (other.doc().step != doc.step || other.doc().world_size != doc.world_size) continue;
    others.push_back(rank_part(other, file));
    ranks.files.emplace_back(rank, file);
  }
  Rows rows = rank_rows_beside(snapshot, kMaxRows);
  rows.erase(doc.rank);
  for (const RankPart& p : others) rows.erase(p.rank);
  for (const auto& [rank, row] : rows) ranks.rows.push_back(rank);
  for (std::int32_t rank = 0; rank < doc.world_size && ranks.missing.size() < 1024; ++rank)
    if (rank != doc.rank && !rows.count(rank) &&
        std::none_of(others.begin(), others.end(), [&](const RankPart& p) { return p.rank == rank; }))
      ranks.missing.push_back(rank);
  std::vector<RankPart> all = others;
  all.push_back(own);
  if (const RankPart* first = first_part(all)) ranks.first = culprit_of(*first);
  if (own.local)
    if (const auto earlier = find_earlier_rank(own_case, snapshot)) {
      ranks.first = culprit_of(earlier->part);
      ranks.first->step = earlier->step;
      ranks.local = false;
    }
  ranks.text = in_words(ranks, own, others, rows);
  return ranks;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace nanquest
