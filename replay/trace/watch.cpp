#include "replay/trace/watch.h"

#include <algorithm>

#include "probe/numerics/scan.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/births.h"

namespace nanquest::trace {
namespace {

bool readable(const at::Tensor& t) {
  return t.defined() && t.has_storage() && t.layout() == at::kStrided && !t.is_meta();
}

std::uint64_t hash_of(const at::Tensor& tensor, HashKind kind) {
  const at::Tensor t = tensor.cpu();
  const auto size = static_cast<std::size_t>(t.element_size());
  const auto bytes = static_cast<std::size_t>(t.numel()) * size;
  const void* data = t.numel() ? t.const_data_ptr() : nullptr;
  const bool whole = kind == HashKind::whole;
  if (t.is_contiguous()) return whole ? hash_bytes(data, bytes) : hash_contents(data, bytes);
  return whole ? hash_bytes_strided(size, data, t.sizes(), t.strides())
               : hash_strided(size, data, t.sizes(), t.strides());
}

}  // namespace

StatsRow measure(const at::Tensor& tensor, bool scan, bool hash, HashKind kind) {
  if (!readable(tensor)) return {};
  // Conjugate and negative views as the recorder sees them: the memory as it is; only signs differ.
  StatsRow row;
  row.count = static_cast<std::uint64_t>(tensor.numel());
  if (scan) {
    const auto stats = stats_of(tensor, hash && kind == HashKind::contents);
    if (!stats || stats->has_hash) return stats.value_or(StatsRow{});
    row = *stats;
  }
  if (hash) row.hash = hash_of(tensor, kind);
  row.has_hash = hash;
  return row;
}

Badness badness(const at::Tensor& tensor) {
  if (!readable(tensor) || !(tensor.is_floating_point() || tensor.is_complex())) return {};
  const auto type = dtype_of(tensor.scalar_type());
  if (type && tensor.is_cpu() && tensor.is_contiguous() &&
      !any_non_finite(*type, tensor.const_data_ptr(), static_cast<std::size_t>(tensor.numel())))
    return {};
  const StatsRow stats = stats_of(tensor, false).value_or(StatsRow{});
  return {stats.nan > 0, stats.non_finite() > 0};
}

bool Watch::overwrites(OpId op, TensorId row) const {
  const auto written = plan_.graph.written(op);
  return std::any_of(written.begin(), written.end(), [&](TensorId target) {
    return target && plan_.graph.slot(target) == plan_.graph.slot(row) &&
           may_overlap(plan_.graph.tensor(target), plan_.graph.tensor(row));
  });
}

Badness Watch::inputs_of(OpId op, SlotStore& inputs, bool overwritten) const {
  Badness found;
  for (const TensorId row : plan_.graph.reads(op))
    if (slots_[plan_.graph.slot(row)].state != State::clean && overwrites(op, row) == overwritten &&
        inputs.available(row))
      found.add(badness(inputs.view(row)));
  return found;
}

void Watch::before(OpId op, SlotStore& inputs) {
  overwritten_ = {};
  overwritten_ = inputs_of(op, inputs, /*overwritten=*/true);
}

void Watch::note_write(TensorId row, const StatsRow& stats) {
  const SlotId id = plan_.graph.slot(row);
  if (!id) return;
  SlotState& slot = slots_[id];
  slot.bad = stats.non_finite();
  if (slot.bad > 0)
    slot.state = State::dirty;
  else if (stats.count * dtype_size(get(doc_, row).dtype) >= get(doc_, id).bytes)
    slot.state = State::clean;
}

void Watch::judge(OpId op, SlotStore& inputs, const BadCounts& wrote, RunResult& result) {
  Badness in = overwritten_;
  in.any = in.any || bad_constants(doc_, op).any();
  in.add(inputs_of(op, inputs, /*overwritten=*/false));
  if (!in.any && can_be_birth(get(doc_, op).flags)) result.births.push_back(op.row());
  if (result.first_inf == kNone && !in.any && wrote.pos_inf + wrote.neg_inf > 0) result.first_inf = op.row();
  if (result.first_nan == kNone && !in.nan && wrote.nan > 0) result.first_nan = op.row();
}

void Watch::after(OpId op, SlotStore& inputs, const std::vector<at::Tensor>& written, bool scan, bool hash,
                  RunResult& result) {
  std::vector<StatsRow>& rows = result.ops[op.index()].written;
  for (const at::Tensor& t : written) rows.push_back(measure(t, scan, hash, doc_.hash_kind));
  if (!scan || (get(doc_, op).flags & kOpUninitialised)) return;
  BadCounts sum;
  for (const StatsRow& stats : rows) sum += stats;
  if (sum.total() > 0) judge(op, inputs, sum, result);
  for (std::size_t i = 0; i < rows.size(); ++i) note_write(plan_.ops[op].written[i], rows[i]);
}

}  // namespace nanquest::trace
