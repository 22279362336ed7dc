#include "replay/trace/watch.h"

#include "probe/numerics/scan.h"
#include "probe/observe/tensor_scan.h"

namespace nanquest::trace {
namespace {

bool readable(const at::Tensor& t) {
  return t.defined() && t.has_storage() && t.layout() == at::kStrided && t.device().is_cpu();
}

std::uint64_t hash_of(const at::Tensor& t, HashKind kind) {
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
  if (type && tensor.is_contiguous() &&
      !any_non_finite(*type, tensor.const_data_ptr(), static_cast<std::size_t>(tensor.numel())))
    return {};
  const StatsRow stats = stats_of(tensor, false).value_or(StatsRow{});
  return {stats.nan > 0, stats.non_finite() > 0};
}

Watch::SlotState* Watch::slot(std::int32_t row) {
  if (row == kNone) return nullptr;
  const std::int32_t index = doc_.tensors[static_cast<std::size_t>(row)].slot;
  return index >= 0 && static_cast<std::size_t>(index) < slots_.size()
             ? &slots_[static_cast<std::size_t>(index)]
             : nullptr;
}

void Watch::before(std::int32_t op, SlotStore& inputs) {
  overwritten_ = {};
  const OpPlan& plan = plan_.ops[static_cast<std::size_t>(op)];
  for (const ArgPlan& arg : plan.args) {
    if (!arg.written || !arg.read) continue;
    for (const std::int32_t row : arg.rows) {
      const SlotState* state = slot(row);
      if (state && state->state != State::clean && inputs.available(row))
        overwritten_.add(badness(inputs.view(row)));
    }
  }
}

void Watch::note_write(std::int32_t row, const StatsRow& stats) {
  SlotState* state = slot(row);
  if (!state) return;
  const TensorRow& tensor = doc_.tensors[static_cast<std::size_t>(row)];
  const std::uint64_t bytes = doc_.slots[static_cast<std::size_t>(tensor.slot)].bytes;
  const bool whole = stats.count * dtype_size(tensor.dtype) >= bytes;
  state->bad = stats.non_finite();
  if (stats.non_finite() > 0)
    state->state = State::dirty;
  else if (whole)
    state->state = State::clean;
}

void Watch::judge(std::int32_t op, SlotStore& inputs, const StatsRow& sum, RunResult& result) {
  const OpPlan& plan = plan_.ops[static_cast<std::size_t>(op)];
  Badness in = overwritten_;
  in.any = in.any || plan.bad_constant;
  for (const ArgPlan& arg : plan.args) {
    if (arg.written) continue;
    for (const std::int32_t row : arg.rows) {
      const SlotState* state = slot(row);
      if (state && state->state != State::clean && inputs.available(row)) in.add(badness(inputs.view(row)));
    }
  }
  if (!in.any) result.births.push_back(op);
  if (result.first_inf == kNone && !in.any && sum.pos_inf + sum.neg_inf > 0) result.first_inf = op;
  if (result.first_nan == kNone && !in.nan && sum.nan > 0) result.first_nan = op;
}

void Watch::after(std::int32_t op, SlotStore& inputs, const std::vector<at::Tensor>& written, bool scan,
                  bool hash, RunResult& result) {
  const OpPlan& plan = plan_.ops[static_cast<std::size_t>(op)];
  OpOutcome& outcome = result.ops[static_cast<std::size_t>(op)];
  StatsRow sum;
  for (const at::Tensor& t : written) outcome.written.push_back(measure(t, scan, hash, doc_.hash_kind));
  if (!scan || (doc_.ops[static_cast<std::size_t>(op)].flags & kOpUninitialised)) return;
  for (const StatsRow& stats : outcome.written) {
    sum.nan += stats.nan;
    sum.pos_inf += stats.pos_inf;
    sum.neg_inf += stats.neg_inf;
  }
  if (sum.non_finite() > 0) judge(op, inputs, sum, result);
  for (std::size_t i = 0; i < outcome.written.size(); ++i) note_write(plan.written[i], outcome.written[i]);
}

}  // namespace nanquest::trace
