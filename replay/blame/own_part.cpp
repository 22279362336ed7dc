#include "replay/blame/own_part.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "probe/trace/collective_call.h"
#include "probe/trace/collectives.h"
#include "replay/blame/neutral.h"
#include "replay/trace/fsdp_copies.h"

namespace nanquest {
namespace {

/// A rank's index in a group, and the size of the group.
struct Seat {
  std::int64_t place = 0, size = 0;
};

std::optional<Seat> seat_of(const SnapshotDoc& doc, const CollectiveCall& call) {
  if (call.ranks.empty()) {
    const std::int64_t size = call.size > 0 ? call.size : doc.world_size;
    if (size != doc.world_size) return std::nullopt;  // the members are unknown
    return Seat{doc.rank, size};
  }
  const auto own = std::find(call.ranks.begin(), call.ranks.end(), doc.rank);
  if (own == call.ranks.end()) return std::nullopt;
  return Seat{own - call.ranks.begin(), static_cast<std::int64_t>(call.ranks.size())};
}

/// The result of one collective if every rank passes `own`, a 1-D tensor; NaN where unknown. Undefined if
/// nothing of it is known.
at::Tensor if_all_give(const CollectiveCall& call, const Seat& seat, const at::Tensor& own,
                       std::int64_t wanted) {
  switch (call.pattern) {
    case Pattern::broadcast:
      return call.root == seat.place ? own : at::Tensor();
    case Pattern::gather: {
      if (wanted != own.numel() * seat.size) return {};
      at::Tensor all = at::full({wanted}, std::numeric_limits<double>::quiet_NaN(), own.options());
      all.narrow(0, seat.place * own.numel(), own.numel()).copy_(own);
      return all;
    }
    case Pattern::reduce:
    case Pattern::reduce_scatter:
      break;
  }
  at::Tensor part = own;
  if (call.pattern == Pattern::reduce_scatter) {
    if (own.numel() != wanted * seat.size) return {};
    part = own.narrow(0, seat.place * wanted, wanted);
  }
  // Older files don't record how a reduction reduces: nearly all are sums.
  if (call.reduction != Reduction::sum && call.reduction != Reduction::unknown) return part;
  const at::Tensor wide = part.to(at::kDouble);
  const double limit = limit_of(own.scalar_type());
  const at::Tensor sum = wide.mul(static_cast<double>(seat.size)).clamp(-limit, limit);
  return at::where(at::isfinite(wide), sum, wide).to(own.scalar_type());
}

at::Tensor flat(const std::vector<at::Tensor>& tensors, std::size_t from, std::size_t count) {
  std::vector<at::Tensor> parts;
  for (std::size_t i = from; i < from + count; ++i) {
    if (i >= tensors.size() || !tensors[i].defined()) return {};
    parts.push_back(tensors[i].reshape({-1}));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

/// True if some element that is bad in the record is finite now.
bool put_own_part(const CollectiveCall& call, const Seat& seat, const std::vector<at::Tensor>& given,
                  const std::vector<at::Tensor>& written) {
  bool changed = false;
  std::size_t from = 0, entry = 0;
  for (std::size_t item = 0; item < call.inputs.size() && item < call.outputs.size(); ++item) {
    const at::Tensor own = flat(given, from, call.inputs[item].size());
    from += call.inputs[item].size();
    std::vector<at::Tensor> results;
    for (std::size_t i = 0; i < call.outputs[item].size(); ++i, ++entry)
      results.push_back(written.at(static_cast<std::size_t>(call.written.at(entry))));
    const at::Tensor recorded = flat(results, 0, results.size());
    if (!own.defined() || !recorded.defined() || !own.is_floating_point() ||
        own.scalar_type() != recorded.scalar_type())
      continue;
    const at::Tensor all = if_all_give(call, seat, own, recorded.numel());
    if (!all.defined()) continue;
    const at::Tensor better = at::logical_and(at::logical_not(at::isfinite(recorded)), at::isfinite(all));
    if (!better.any().item<bool>()) continue;
    changed = true;
    const at::Tensor mended = at::where(better, all, recorded);
    std::int64_t at_element = 0;
    for (const at::Tensor& result : results) {
      result.copy_(mended.narrow(0, at_element, result.numel()).view(result.sizes()));
      at_element += result.numel();
    }
  }
  return changed;
}

/// The same as a copy of what is there now.
TraceEdit::StandIn copied_again(const TraceGraph& graph, OpId op) {
  const auto reads = graph.reads(op);
  const std::vector<TensorId> rows(reads.begin(), reads.end());
  return {rows, [&graph, op, rows](const std::vector<at::Tensor>& given, std::vector<at::Tensor>& written) {
            const auto value = [&](TensorId wanted) {
              const auto at = std::find(rows.begin(), rows.end(), wanted);
              return at == rows.end() ? at::Tensor() : given[static_cast<std::size_t>(at - rows.begin())];
            };
            trace::copy_as_fsdp(graph.doc(), graph.op(op), value, written);
          }};
}

}  // namespace

OwnParts::OwnParts(const TraceGraph& graph) {
  const SnapshotDoc& doc = graph.doc();
  if (doc.world_size <= 1) return;
  for (const OpId op : graph.ops()) {
    // Otherwise what is finite now would not reach the collective.
    if (trace::is_kept_copy(graph.op(op)) && graph.read_counts(op).total() > 0)
      stand_ins_[op.row()] = copied_again(graph, op);
    if (!is_collective(graph.op(op).name)) continue;
    const auto call = collective_call(doc, op);
    const auto seat = call ? seat_of(doc, *call) : std::nullopt;
    if (!seat) continue;
    TraceEdit::StandIn stand_in;
    for (const FlatRows& item : call->inputs)
      stand_in.reads.insert(stand_in.reads.end(), item.begin(), item.end());
    if (std::none_of(stand_in.reads.begin(), stand_in.reads.end(),
                     [&](TensorId row) { return graph.bad(row); }))
      continue;
    const bool reduces = call->reduction != Reduction::none;
    stand_in.put = [call = *call, seat = *seat, op, reduces, assumed = assumed_](
                       const std::vector<at::Tensor>& given, std::vector<at::Tensor>& written) {
      if (put_own_part(call, seat, given, written) && reduces) assumed->insert(op);
    };
    stand_ins_[op.row()] = std::move(stand_in);
  }
}

void OwnParts::add_to(TraceEdit& edit) const {
  edit.stand_ins.insert(stand_ins_.begin(), stand_ins_.end());
}

}  // namespace nanquest
