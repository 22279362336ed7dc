#include "replay/cause/protect.h"

#include <algorithm>
#include <set>

#include "replay/counterfactual/change.h"
#include "replay/lab/ddmin.h"

namespace nanquest {
namespace {

constexpr int kMaxRuns = 32;

/// An op that computes something in a format that can be wider.
bool can_be_wider(const Case& c, std::int32_t op) {
  const OpRow& row = *c.row(op);
  if (row.flags & (kOpUninitialised | kOpHostWrite | kOpOpaque | kOpFailed)) return false;
  for (std::int32_t i = 0; i < row.written_count; ++i) {
    const std::int32_t t =
        c.doc().written[static_cast<std::size_t>(row.first_written) + static_cast<std::size_t>(i)];
    if (t != kNone && dtype_is_float(c.doc().tensors[static_cast<std::size_t>(t)].dtype)) return true;
  }
  return false;
}

/// The set, the readers of its results, and the ops that made its inputs.
std::set<std::int32_t> grown(const Case& c, const std::set<std::int32_t>& ops) {
  std::set<std::int32_t> more = ops;
  for (const std::int32_t op : ops) {
    for (const std::int32_t reader : c.readers(op)) more.insert(reader);
    for (const Case::TensorArgument& a : c.tensor_arguments(op))
      if (const std::int32_t maker = c.producer(a.tensor, op); maker != kNone) more.insert(maker);
  }
  return more;
}

}  // namespace

std::vector<std::int32_t> protected_set(const Case& c, Precision wide, std::size_t most) {
  if (!c.op()) return {};
  const auto heals = [&](const std::vector<std::int32_t>& ops) {
    return c.has_time() && run_change(c, set_in(c, ops, wide)) == TrialResult::finite;
  };
  std::set<std::int32_t> ring = {c.op_index()};
  std::vector<std::int32_t> ops;
  int runs = 0;
  bool healed = false;
  for (std::size_t tried = 2; !healed && c.has_time();) {
    // Twice as many ops each time: a ring that hardly grows is not worth a run.
    std::set<std::int32_t> next = ring;
    while (next.size() < 2 * tried) {
      std::set<std::int32_t> wider = grown(c, next);
      if (wider.size() == next.size()) break;
      next = std::move(wider);
    }
    if (next.size() == ring.size()) return {};
    ring = std::move(next);
    tried = ring.size();
    ops.clear();
    for (const std::int32_t op : ring)
      if (can_be_wider(c, op)) ops.push_back(op);
    ++runs;
    healed = heals(ops);
  }
  if (!healed) return {};
  ops = ddmin<std::int32_t>(ops, heals, kMaxRuns - runs);
  return ops.size() <= most ? ops : std::vector<std::int32_t>{};
}

}  // namespace nanquest
