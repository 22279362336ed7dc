#include "replay/diff/rank_steps.h"

#include <algorithm>
#include <set>

namespace nanquest::diff {
namespace {

Made put_together(const at::Tensor& whole, const std::vector<at::Tensor>& parts, const Ways& ways,
                  const Apart& limit) {
  if (!whole.defined() || parts.empty() || !parts.front().defined()) return {};
  return made_up(whole, parts, ways, [&](const Apart& found) {
    return !beyond(found, limit, whole.scalar_type(), parts.front().scalar_type());
  });
}

int order_of(const std::string& group) {
  return group == "loss" ? 0 : group == "gradients" ? 1 : 2;
}

}  // namespace

RankSteps::RankSteps(const Replayer& one, const std::vector<Replayer>& ranks)
    : one_(one), ranks_(ranks), graph_(one.doc()), wanted_(ranks.size()) {
  for (const Replayer& rank : ranks) graphs_.emplace_back(rank.doc());
  alignment_ = align(graph_, graphs_.front());
  collect_rows();
  collect_ends();
}

std::int64_t RankSteps::ends(const std::string& group) const {
  return std::count_if(ends_.begin(), ends_.end(), [&](const RankEnd& end) { return end.group == group; });
}

void RankSteps::look_at_rounding(int times) {
  std::vector<Place> wanted;
  for (const RankEnd& end : ends_) wanted.push_back(end.one);
  rounding_.emplace(one_, times, wanted);
}

double RankSteps::limit_of(const std::string& group) const {
  double farthest = 0;
  for (std::size_t i = 0; i < ends_.size(); ++i)
    if (ends_[i].group == group) farthest = std::max(farthest, rounding_->wanted(i).whole);
  return farthest;
}

/// The ranks run the same program, so the first one's ops stand for those of the others.
void RankSteps::collect_rows() {
  std::vector<Alignment> to_rank;
  for (std::size_t i = 1; i < ranks_.size(); ++i) to_rank.push_back(align(graphs_.front(), graphs_[i]));
  for (const OpId op : graph_.ops()) {
    std::vector<OpId> row{alignment_.of_a[op]};
    if (!row.front() || (graph_.op(op).flags & kOpUninitialised) != 0) continue;
    for (const Alignment& other : to_rank) row.push_back(other.of_a[row.front()]);
    row.push_back(op);
    if (std::all_of(row.begin(), row.end(), [](OpId id) { return static_cast<bool>(id); }))
      rows_.push_back(std::move(row));
  }
}

void RankSteps::collect_ends() {
  struct Found {
    RankEnd end;
    std::vector<std::pair<std::size_t, Place>> parts;
  };
  std::vector<Found> found;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    std::vector<OnlyEnd> only;
    for (const End& end : ends_of(graph_, graphs_[rank], only)) {
      const auto [at, is_new] = known.emplace(std::pair(end.group, end.name), found.size());
      if (is_new) found.push_back({{end.group, end.name, end.a, {}}, {}});
      found[at->second].parts.emplace_back(rank, end.b);
    }
    if (rank == 0) only_ = std::move(only);
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& l, const Found& r) {
    return order_of(l.end.group) < order_of(r.end.group);
  });
  for (Found& one : found) {
    for (const auto& [rank, place] : one.parts) {
      one.end.parts.emplace_back(rank, wanted_[rank].size());
      wanted_[rank].push_back(place);
    }
    ends_.push_back(std::move(one.end));
  }
}

RankPass RankSteps::run(const Edits& edits, std::int64_t samples) const {
  RankPass pass;
  pass.shares = Shares(ranks_.size());
  std::set<std::pair<OpId, SlotId>> gradients;  // A's op, where it wrote one
  std::vector<Place> wanted;
  for (const RankEnd& end : ends_) {
    wanted.push_back(end.one);
    if (end.group == "gradients") gradients.emplace(end.one.op, graph_.slot(end.one.row));
  }
  const RunOptions options = edits.options(), as_recorded = Edits().options();
  std::vector<LockstepRun> runs;
  for (std::size_t i = 0; i < ranks_.size(); ++i) runs.push_back({&ranks_[i], &as_recorded, wanted_[i]});
  runs.push_back({&one_, &options, wanted});
  const auto compare = [&](std::size_t row, const std::vector<std::vector<at::Tensor>>& written) {
    const OpId op = rows_[row].back();
    const auto rows = graph_.written(op);
    const bool backward = graph_.op(op).phase == Phase::backward;
    for (std::size_t k = 0; k < written.back().size(); ++k) {
      const at::Tensor& whole = written.back()[k];
      std::vector<at::Tensor> parts;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        parts.push_back(k < written[rank].size() ? written[rank][k] : at::Tensor());
      const Ways ways{true, backward || (whole.defined() && whole.numel() == 1), samples};
      const WrittenPlace place{op.row(), static_cast<std::int32_t>(k)};
      pass.made.emplace(place, put_together(whole, parts, ways, limit(place)));
      if (backward && k < rows.size() && gradients.contains({op, graph_.slot(rows[k])}))
        pass.shares.add(whole, parts);
    }
  };
  const Results results = march(runs, rows_, compare);
  for (std::size_t i = 0; i < ends_.size(); ++i) judge(i, results, pass);
  return pass;
}

void RankSteps::judge(std::size_t index, const Results& results, RankPass& pass) const {
  const RankEnd& end = ends_[index];
  std::vector<at::Tensor> parts;
  for (const auto& [rank, at] : end.parts) parts.push_back(results[rank].second[at]);
  const bool is_loss = end.group == "loss";
  const Apart limit = rounding_->wanted(index);
  const Made made = put_together(results.back().second[index], parts, {is_loss, is_loss, 0}, limit);
  if (pass.ends.empty() || pass.ends.back().name != end.group) pass.ends.push_back({end.group, 0, 0, "", {}});
  if (made.how == MadeUp::other_shapes) {
    pass.left_out.push_back(end.group + ": the parts of " + end.name + " could not be put together");
    return;
  }
  Group& group = pass.ends.back();
  ++group.compared;
  if (made.fits()) return;
  if (++group.differ == 1) group.first = end.name, group.distance = {made.apart.whole, limit.whole};
}

}  // namespace nanquest::diff
