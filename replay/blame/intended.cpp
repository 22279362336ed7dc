#include "replay/blame/intended.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "probe/tensor/tensor_scan.h"
#include "probe/trace/births.h"
#include "replay/blame/choice.h"
#include "replay/blame/neutral.h"
#include "replay/blame/range_overflow.h"

namespace nanquest {
namespace {

/// at most this many ops that read the bad values are looked at
constexpr std::size_t kMaxReaders = 24;

using Outputs = std::map<std::int32_t, std::vector<at::Tensor>>;

/// Forward ops that read the suspect's bad values, or bad values computed from them, in order.
std::vector<OpId> readers_of(const TraceGraph& graph, const Suspect& suspect) {
  std::vector<OpId> found;
  PerRow<OpRow, bool> seen(graph.doc().ops.size(), false);
  std::vector<OpId> open;
  const auto add = [&](OpId op) {
    if (seen[op] || graph.op(op).phase == Phase::backward || graph.op(op).phase == Phase::optimizer) return;
    seen[op] = true;
    open.push_back(op);
  };
  for (const OpId op : graph.consumers(suspect.op)) add(op);
  while (!open.empty() && found.size() < kMaxReaders) {
    const OpId op = open.front();
    open.erase(open.begin());
    if (graph.read_counts(op).total() == 0) continue;  // it reads another part
    found.push_back(op);
    if (graph.written_counts(op).total() > 0)
      for (const OpId next : graph.consumers(op)) add(next);
  }
  return found;
}

/// Its numbers as fp64, those of a complex tensor as pairs; undefined for a tensor of whole numbers.
at::Tensor numbers_of(const at::Tensor& t) {
  if (!t.defined()) return {};
  const at::Tensor real = as_reals(t);
  return real.is_floating_point() ? real.to(at::kDouble, false, true) : at::Tensor();
}

Outputs outputs_of(Lab& lab, const std::vector<OpId>& ops, TraceEdit edit) {
  Outputs found;
  RunOptions options;
  options.edit = std::move(edit);
  const std::set<OpId> wanted(ops.begin(), ops.end());
  options.stop_after = wanted.rbegin()->row();
  options.on_op = [&](std::int32_t op, const std::vector<at::Tensor>& outputs) {
    if (!wanted.count(OpId{op})) return;
    for (const at::Tensor& t : outputs) found[op].push_back(numbers_of(t));
  };
  (void)lab.run(options, wanted.begin()->row());
  return found;
}

/// What one reader made of the bad values.
struct Use {
  bool finite_depends = false;  ///< a finite result depends on them
  bool all_finite = false;      ///< no bad result
};

Use use_of(const std::vector<at::Tensor>& with, const std::vector<at::Tensor>& without) {
  Use use;
  use.all_finite = !with.empty();
  for (std::size_t i = 0; i < with.size() && i < without.size(); ++i) {
    if (!with[i].defined() || !without[i].defined() || with[i].sizes() != without[i].sizes()) continue;
    const at::Tensor finite = at::isfinite(with[i]);
    use.all_finite = use.all_finite && finite.all().item<bool>();
    use.finite_depends =
        use.finite_depends || at::logical_and(finite, with[i] != without[i]).any().item<bool>();
  }
  return use;
}

/// For a sum of logarithms, -Inf is the correct logarithm of zero.
bool sums_logarithms(const OpRow& op) {
  return op.name.find("logsumexp") != std::string::npos || op.name.find("logaddexp") != std::string::npos ||
         op.name.find("logcumsumexp") != std::string::npos;
}

/// Backward makes the first NaN where it differentiates the suspect's op, or one that passed its infinity on.
bool harms_in_its_derivative(const TraceGraph& graph, const Suspect& suspect) {
  std::set<OpId> infinite = {suspect.op};
  for (const OpId op : readers_of(graph, suspect))
    if (graph.written_counts(op).nan == 0 && graph.written_counts(op).total() > 0 &&
        !sums_logarithms(graph.op(op)))
      infinite.insert(op);
  for (const OpId op : graph.ops()) {
    if (graph.op(op).phase != Phase::backward || graph.written_counts(op).nan == 0 ||
        graph.read_counts(op).nan > 0)
      continue;
    return infinite.count(graph.forward_of(op)) > 0;
  }
  return false;
}

/// -Inf and one finite number, nothing else: an additive mask.
bool is_additive_mask(const TraceGraph& graph, TensorId row) {
  const StatsRow* s = graph.stats(row);
  if (!s || s->neg_inf == 0 || s->non_finite() > s->neg_inf) return false;
  const bool zeros_alone = s->zero + s->neg_inf == s->count;
  return zeros_alone || (s->zero == 0 && s->amax == s->amin_nonzero);
}

}  // namespace

bool is_said_to_be_meant(const TraceGraph& graph, const Suspect& suspect) {
  if (suspect.kinds.nan || suspect.hidden) return false;
  if (suspect.row) return is_additive_mask(graph, suspect.row);
  return are_meant_by_constant(graph.doc(), suspect.op);
}

bool is_intended(Lab& lab, const Suspect& suspect, const PerRow<OpRow, bool>& counts_for_loss) {
  const TraceGraph& graph = lab.graph();
  if (is_said_to_be_meant(graph, suspect)) return true;
  const OpRow& op = graph.op(suspect.op);
  if (suspect.kinds.nan || suspect.hidden || suspect.row || op.phase != Phase::forward) return false;
  if (op.flags & kOpBirthFiniteAbove)
    return false;  // a number too large for the format, whatever became of
                   // it
  std::vector<OpId> readers = readers_of(graph, suspect);
  std::erase_if(readers, [&](OpId reader) { return !counts_for_loss[reader]; });
  if (readers.empty()) return false;
  const Outputs with = outputs_of(lab, readers, {});
  bool used = false, chosen = false;
  for (const Neutral neutral : {Neutral::above, Neutral::one}) {
    TraceEdit edit;
    neutralise(graph, suspect, neutral, edit);
    const Outputs without = outputs_of(lab, readers, std::move(edit));
    for (const OpId reader : readers) {
      const auto a = with.find(reader.row()), b = without.find(reader.row());
      if (a == with.end() || b == without.end()) continue;
      const Use use = use_of(a->second, b->second);
      const bool by_value = use.all_finite && chooses_by_value(graph.op(reader));
      used = used || (use.finite_depends && !by_value);
      chosen = chosen || by_value || (use.all_finite && !use.finite_depends);
    }
  }
  if (!used) return chosen;
  return op.name.find("log") != std::string::npos && !is_range_overflow(lab, suspect) &&
         !harms_in_its_derivative(graph, suspect);
}

}  // namespace nanquest
