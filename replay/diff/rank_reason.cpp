#include "replay/diff/rank_reason.h"

#include <algorithm>

#include "probe/trace/collectives.h"
#include "replay/diff/words.h"

namespace nanquest::diff {
namespace {

constexpr int kMostHops = 16;

bool end_agrees(const std::vector<Group>& ends, const char* name) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](const Group& g) { return g.name == name && g.compared > 0 && g.differ == 0; });
}

/// Ops of earlier phases made what agrees.
Phase first_phase(const std::vector<Group>& ends) {
  if (end_agrees(ends, "gradients")) return Phase::optimizer;
  if (end_agrees(ends, "loss")) return Phase::backward;
  return Phase::input;
}

class InOrder {
 public:
  InOrder(const Steps& steps, const std::map<WrittenPlace, Made>& made) : steps_(steps), made_(made) {}

  std::optional<NotMadeUp> first_from(Phase phase) const {
    std::optional<NotMadeUp> first;
    for (const auto& [place, made] : made_) {
      if (made.how != MadeUp::nothing) continue;
      const OpRow& op = steps_.graph_a.op(OpId{place.op});
      if (op.phase < phase || computes_nothing(op)) continue;
      NotMadeUp found = looked_at(place);
      if (found.inputs_agree || found.is_found) return found;
      if (!first) first = std::move(found);
    }
    return first;
  }

 private:
  NotMadeUp looked_at(const WrittenPlace& place) const {
    NotMadeUp found{place, kNotMadeUp, true, false};
    const OpId op{place.op};
    if ((steps_.graph_a.op(op).flags & kOpSeeded) != 0) {
      found.text = "random numbers, which each rank draws for itself";
      found.is_found = true;
      return found;
    }
    std::string of_sum;
    for (const TensorId row : steps_.graph_a.reads(op)) {
      const std::optional<std::pair<OpId, Made>> input = made_of(row, op);
      if (!input) continue;
      found.inputs_agree = found.inputs_agree && input->second.fits();
      if (input->second.how == MadeUp::sum && !is_alone(input->first) && reads_in_b(op, input->first))
        of_sum = named(input->first);
    }
    if (const std::string more = of_ranks_alone(op); !more.empty())
      found.text += "; only the ranks run " + more + " before it";
    if (found.inputs_agree && !of_sum.empty()) {
      found.text = "it reads parts of a sum: the ranks' results of " + of_sum + " were not added before it";
      found.is_found = true;
    }
    return found;
  }

  /// Ops of the same module that compute something and have no partner in A, from B's last op that has one:
  /// "aten::mul, aten::add".
  std::string of_ranks_alone(OpId op) const {
    const OpId partner = steps_.alignment.of_a[op];
    std::string text;
    for (std::int32_t at = partner.row() - 1; at >= 0 && !steps_.alignment.of_b[OpId{at}]; --at) {
      const OpRow& row = steps_.graph_b.op(OpId{at});
      const bool copies =
          row.name == "aten::clone" || row.name == "aten::_to_copy" || row.name == "aten::copy_";
      if (computes_nothing(row) || copies || (row.flags & (kOpUninitialised | kOpOpaque)) != 0 ||
          is_collective(row.name) || steps_.graph_b.module_of(OpId{at}) != steps_.graph_b.module_of(partner))
        continue;
      text = row.name + (text.empty() ? "" : ", ") + text;
    }
    return text;
  }

  std::string named(OpId op) const {
    const std::string module = plain_path(steps_.graph_a.module_of(op));
    return steps_.graph_a.op(op).name + (module.empty() ? "" : " in " + module);
  }

  /// A scalar may be a sum of others by chance.
  bool is_alone(OpId op) const {
    const auto written = steps_.graph_a.written(op);
    return written.empty() || !written.front() || steps_.graph_a.tensor(written.front()).sizes.empty();
  }

  /// How the ranks' values make up an input of A's op: that of the op that made it, or of what a view of it
  /// was taken of.
  std::optional<std::pair<OpId, Made>> made_of(TensorId row, OpId before) const {
    OpId maker = steps_.graph_a.producer(row, before);
    for (int i = 0; maker && i < kMostHops; ++i) {
      const auto written = steps_.graph_a.written(maker);
      for (std::size_t k = 0; k < written.size(); ++k) {
        if (steps_.graph_a.slot(written[k]) != steps_.graph_a.slot(row) && written.size() > 1) continue;
        const auto found = made_.find({maker.row(), static_cast<std::int32_t>(k)});
        if (found != made_.end() && found->second.how != MadeUp::other_shapes)
          return std::pair(maker, found->second);
      }
      const auto reads = steps_.graph_a.reads(maker);
      if (reads.size() != 1) return std::nullopt;
      row = reads.front();
      maker = steps_.graph_a.producer(row, maker);
    }
    return std::nullopt;
  }

  /// Whether B's op reads, as it is or by views, what B's partner of `maker` wrote: no collective is between.
  bool reads_in_b(OpId op, OpId maker) const {
    const OpId reader = steps_.alignment.of_a[op], wanted = steps_.alignment.of_a[maker];
    for (TensorId row : steps_.graph_b.reads(reader)) {
      OpId at = steps_.graph_b.producer(row, reader);
      for (int i = 0; at && at != wanted && i < kMostHops; ++i) {
        const auto reads = steps_.graph_b.reads(at);
        if (!computes_nothing(steps_.graph_b.op(at)) || reads.empty()) break;
        at = steps_.graph_b.producer(reads.front(), at);
      }
      if (at && at == wanted) return true;
    }
    return false;
  }

  const Steps& steps_;
  const std::map<WrittenPlace, Made>& made_;
};

}  // namespace

std::optional<NotMadeUp> first_not_made_up(const Steps& steps, const std::map<WrittenPlace, Made>& made,
                                           const std::vector<Group>& ends) {
  return InOrder(steps, made).first_from(first_phase(ends));
}

std::string words_of_shares(const std::vector<double>& of_rank) {
  std::string text;
  for (std::size_t i = 0; i < of_rank.size(); ++i)
    text += (i == 0 ? "" : i + 1 == of_rank.size() ? " and " : ", ") + number(of_rank[i]);
  const bool equal = std::all_of(of_rank.begin(), of_rank.end(), [&](double share) {
    return std::abs(share - of_rank.front()) < 1e-3 * std::abs(of_rank.front());
  });
  if (equal)
    return "each rank's own gradients are right: times " + number(of_rank.front()) +
           " and added they are those of one rank; what the ranks make of them differs";
  return "the gradients of each rank's batch, weighted " + text +
         " and added, are those of one rank: the ranks count alike, although their losses are means over "
         "different numbers of elements";
}

}  // namespace nanquest::diff
