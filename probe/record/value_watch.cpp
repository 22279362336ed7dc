// ValueWatch: statistics and hashes of what ops read and write, each computed once.
#include "probe/record/value_watch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "probe/record/memory_views.h"
#include "probe/record/rows.h"
#include "probe/record/tokens.h"
#include "probe/tensor/each_tensor.h"
#include "probe/tensor/parallel.h"
#include "probe/trace/op_facts.h"

namespace nanquest::record {
namespace {

/// The hash of uninitialised bytes.
StatsRow hash_of(const StatsRow& stats) {
  StatsRow row;
  row.hash = stats.hash;
  row.has_hash = stats.has_hash;
  return row;
}

}  // namespace

ValueWatch::Likeness ValueWatch::likeness(const Known& k, std::uint64_t count, const at::Tensor& tensor,
                                          bool contiguous, bool dense) {
  if (k.offset != tensor.storage_offset()) return Likeness::none;
  if (tensor.sizes() == k.sizes && tensor.strides() == k.strides) return Likeness::same;
  if (!k.dense || !dense || count != static_cast<std::uint64_t>(tensor.numel())) return Likeness::none;
  return k.contiguous && contiguous ? Likeness::same : Likeness::same_elements;
}

ValueWatch::SlotValues& ValueWatch::of(std::uint32_t slot) {
  if (slots_.size() <= slot) slots_.resize(slot + 1);
  return slots_[slot];
}

std::uint32_t& ValueWatch::flags_of(std::uint32_t op) {
  if (flags_.size() <= op) flags_.resize(op + 1, 0);
  return flags_[op];
}

std::size_t ValueWatch::see(std::uint32_t token, std::uint32_t slot, std::int32_t stats) {
  seen_.push_back({token, slot, stats});
  return seen_.size() - 1;
}

std::int32_t ValueWatch::add(const StatsRow& stats) {
  stats_rows_.push_back(stats);
  return static_cast<std::int32_t>(stats_rows_.size()) - 1;
}

bool ValueWatch::non_finite(std::int32_t stats) const {
  return stats != kNone && stats_rows_[static_cast<std::size_t>(stats)].non_finite() > 0;
}

std::int32_t ValueWatch::stats_at(std::uint32_t token) const {
  const auto at = std::lower_bound(seen_.begin(), seen_.end(), token,
                                   [](const Seen& s, std::uint32_t t) { return s.token < t; });
  return at == seen_.end() || at->token != token ? kNone : at->stats;
}

std::int32_t ValueWatch::stats_for(const at::Tensor& tensor, std::uint32_t slot, Look look) {
  if (look == Look::nothing) return kNone;
  const auto type = dtype_of(tensor.scalar_type());
  if (!type) return kNone;
  const bool hash = look == Look::values_and_hash;
  const bool contiguous = tensor.is_contiguous(), dense = contiguous || tensor.is_non_overlapping_and_dense();
  SlotValues& values = of(slot);
  std::optional<StatsRow> stats;
  for (const Known& k : values.known) {
    const StatsRow& seen = stats_rows_[static_cast<std::size_t>(k.stats)];
    if (k.generation != values.generation || k.dtype != *type || (hash && !seen.has_hash)) continue;
    const Likeness like = likeness(k, seen.count, tensor, contiguous, dense);
    if (like == Likeness::same) return k.stats;
    if (waits(k.stats) || like == Likeness::none || hash || seen.non_finite() > 0) continue;
    stats = seen;  // in another order the hash and the index of the first bad element would differ
    stats->has_hash = false;
    stats->hash = 0;
  }
  if (const auto seen = ready_.find(tensor.unsafeGetTensorImpl());
      !stats && seen != ready_.end() && (seen->second.has_hash || !hash))
    stats = seen->second;
  if (!stats && looked_at_later(slot, look)) return kNone;
  std::int32_t index = stats ? kNone : look_later(tensor, hash);
  if (index == kNone && !stats) stats = stats_of(tensor, hash);
  if (index == kNone && !stats) return kNone;
  if (index == kNone) index = add(*stats);
  std::erase_if(values.known, [&](const Known& k) { return k.generation != values.generation; });
  values.known.push_back({values.generation, index, *type, tensor.storage_offset(), tensor.sizes().vec(),
                          tensor.strides().vec(), contiguous, dense});
  return index;
}

std::int32_t ValueWatch::look_now(const at::Tensor& tensor, std::uint32_t slot) {
  const at::NoGradGuard no_grad;
  return stats_for(tensor, slot, Look::values_and_hash);
}

bool ValueWatch::waits(std::int32_t stats) const {
  return stats != kNone && static_cast<std::size_t>(stats) < waiting_.size() &&
         waiting_[static_cast<std::size_t>(stats)];
}

std::int32_t ValueWatch::look_later(const at::Tensor& tensor, bool hash) {
  const auto row = static_cast<std::int32_t>(stats_rows_.size());
  if (!later_.take(tensor, hash, row)) return kNone;
  StatsRow empty;
  empty.count = static_cast<std::uint64_t>(tensor.numel());
  empty.has_hash = hash;
  waiting_.resize(static_cast<std::size_t>(row) + 1, false);
  waiting_.back() = true;
  return add(empty);
}

void ValueWatch::settle() {
  if (later_.empty()) return;
  const at::NoGradGuard no_grad;
  for (const auto& [row, stats] : later_.read()) stats_rows_[static_cast<std::size_t>(row)] = stats;
  waiting_.clear();
  for (const std::int32_t row : std::exchange(nobodys_, {})) {
    StatsRow& stats = stats_rows_[static_cast<std::size_t>(row)];
    stats = hash_of(stats);
  }
  for (const Unjudged& op : std::exchange(unjudged_, {})) {
    if (!is_birth(op.op, op.inputs_finite && !any_bad(op.in), op.made_bad || any_bad(op.out), op.unseen))
      continue;
    flags_of(op.op) |= kOpBirth;
    if (any_infinite(op.out)) open_.add(step_.ops[op.op]);
  }
}

bool ValueWatch::any_bad(const std::vector<std::int32_t>& rows) const {
  return std::any_of(rows.begin(), rows.end(), [&](std::int32_t row) { return non_finite(row); });
}

bool ValueWatch::any_infinite(const std::vector<std::int32_t>& rows) const {
  return std::any_of(rows.begin(), rows.end(), [&](std::int32_t row) {
    const StatsRow& stats = stats_rows_[static_cast<std::size_t>(row)];
    return stats.pos_inf + stats.neg_inf > 0;
  });
}

bool ValueWatch::looked_at_later(std::uint32_t slot, Look look) {
  if (look != Look::values || of(slot).generation > 0) return false;
  const SlotRecord& record = step_.slots[slot];
  return !record.shared && (record.live || record.saved || record.saved_on_device.defined());
}

void ValueWatch::look_at_first_values(std::size_t index) {
  Seen& seen = seen_[index];
  const std::uint64_t* const words = step_.words.at(seen.token);
  const auto header = Reader(words).header();
  const std::size_t same = (1 + 2 * std::size_t{header.dim}) * sizeof(std::uint64_t);
  SlotValues& values = of(seen.slot);
  for (const std::size_t other : values.first_seen) {
    const std::uint64_t* const there = step_.words.at(seen_[other].token);
    const auto head = Reader(there).header();
    if (head.scalar_type != header.scalar_type || head.dim != header.dim ||
        std::memcmp(there + 1, words + 1, same) != 0)
      continue;
    seen.stats = seen_[other].stats;
    return;
  }
  const at::Tensor view =
      view_at(words, first_elements(step_.slots[seen.slot], static_cast<at::ScalarType>(header.scalar_type)));
  if (!view.defined()) return;
  seen.stats = look_later(view, /*hash=*/false);
  if (seen.stats == kNone)
    if (const auto stats = stats_of(view, /*hash=*/false)) seen.stats = add(*stats);
  if (seen.stats != kNone) values.first_seen.push_back(index);
}

void ValueWatch::look_at_unseen() {
  const at::NoGradGuard no_grad;
  for (const std::size_t seen : unseen_)
    if (seen_[seen].stats == kNone) look_at_first_values(seen);
  unseen_.clear();
  settle();
}

void ValueWatch::look_ahead(std::vector<at::Tensor> tensors, Look look) {
  ready_.clear();
  if (tensors.size() < 2 || threads_here() == 1) return;
  std::erase_if(tensors, [](const at::Tensor& t) { return !can_record(t) || !t.is_cpu(); });
  const auto bytes = [](const at::Tensor& t) {
    return t.numel() * static_cast<std::int64_t>(t.element_size());
  };
  std::int64_t all = 0;
  for (const at::Tensor& t : tensors) all += bytes(t);
  if (all < static_cast<std::int64_t>(kWorthWaking)) return;
  // The largest first, so that the last one taken is small.
  std::sort(tensors.begin(), tensors.end(),
            [&](const at::Tensor& a, const at::Tensor& b) { return bytes(a) > bytes(b); });
  std::vector<std::optional<StatsRow>> rows(tensors.size());
  std::atomic<std::size_t> next{0};
  parallel_ranges(threads_here(), 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t i; (i = next++) < tensors.size();)
      rows[i] = stats_of(tensors[i], look == Look::values_and_hash);
  });
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (rows[i]) ready_.emplace(tensors[i].unsafeGetTensorImpl(), *rows[i]);
}

void ValueWatch::before_arguments(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  ready_.clear();
  if (op.awaits || op.opaque) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> unknown;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isTensorList() || op.argument_overwritten[i]) continue;
    for (const at::Tensor& t : inputs[i].toTensorVector()) {
      const std::uint32_t slot =
          can_record(t) ? step_.slots.find(t.storage().unsafeGetStorageImpl()) : SlotIndex::kMissing;
      if (slot == SlotIndex::kMissing) {
        unknown.push_back(t);
        continue;
      }
      if (looked_at_later(slot, Look::values)) continue;
      const SlotValues& values = of(slot);
      if (std::none_of(values.known.begin(), values.known.end(),
                       [&](const Known& k) { return k.generation == values.generation; }))
        unknown.push_back(t);
    }
  }
  look_ahead(std::move(unknown), Look::values);
}

void ValueWatch::before_outputs(const OpTraits& op, c10::ArrayRef<const c10::IValue> outputs,
                                const std::vector<at::Tensor>& written) {
  ready_.clear();
  if (op.uninitialised || op.collective) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> made = written;
  for (const c10::IValue& output : outputs)
    each_tensor(output, [&](const at::Tensor& t) {
      if (can_record(t) && step_.slots.find(t.storage().unsafeGetStorageImpl()) == SlotIndex::kMissing)
        made.push_back(t);
    });
  look_ahead(std::move(made), Look::values_and_hash);
}

void ValueWatch::argument(const OpTraits& op, WatchedOp& watched, const at::Tensor& tensor,
                          std::uint32_t slot, std::uint32_t token, bool read, bool written) {
  const at::NoGradGuard no_grad;
  const Look look = !read ? Look::nothing : op.opaque ? Look::values_and_hash : Look::values;
  const std::int32_t stats = stats_for(tensor, slot, look);
  const std::size_t seen = see(token, slot, stats);
  if (waits(stats)) watched.waiting_in.push_back(stats);
  if (non_finite(stats)) watched.inputs_finite = false;
  if (stats == kNone && looked_at_later(slot, look)) {
    unseen_.push_back(seen);
    watched.unseen.push_back(seen);
  }
  if (op.opaque && !op.collective && !written) watched.unsure.push_back({seen, tensor});
}

void ValueWatch::wrote(const OpTraits& op, WatchedOp& watched, const at::Tensor& tensor, std::uint32_t slot,
                       std::uint32_t token, int output) {
  ++of(slot).generation;
  if (op.uninitialised) {
    // Uninitialised: nothing is counted. But if the first read sees the same bytes, nothing wrote to them.
    if (!tensor.is_contiguous()) return;
    std::int32_t row = look_later(tensor, /*hash=*/true);
    if (row != kNone) {
      nobodys_.push_back(row);
    } else if (const auto bytes = stats_of(tensor, /*hash=*/true)) {
      row = add(hash_of(*bytes));
    }
    if (row != kNone) (void)see(token, slot, row);
    return;
  }
  if (output >= 0 && is_scratch(op.name, static_cast<std::size_t>(output))) return;
  const at::NoGradGuard no_grad;
  const std::int32_t stats = stats_for(tensor, slot, Look::values_and_hash);
  (void)see(token, slot, stats);
  if (waits(stats)) watched.waiting_out.push_back(stats);
  watched.made_bad = watched.made_bad || non_finite(stats);
}

void ValueWatch::will_write(std::uint32_t slot, std::uint32_t token) {
  ++of(slot).generation;
  (void)see(token, slot, kNone);
}

void ValueWatch::wrote_late(const at::Tensor& tensor, std::uint32_t slot, std::uint32_t token) {
  const at::NoGradGuard no_grad;
  const std::int32_t stats = stats_for(tensor, slot, Look::values_and_hash);
  const auto at = std::lower_bound(seen_.begin(), seen_.end(), token,
                                   [](const Seen& s, std::uint32_t t) { return s.token < t; });
  if (at != seen_.end() && at->token == token) at->stats = stats;
}

std::vector<at::Tensor> ValueWatch::rewritten(const WatchedOp& watched) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  if (!watched.unsure.empty()) settle();
  for (const WatchedOp::Unsure& unsure : watched.unsure) {
    const std::int32_t before = seen_[unsure.seen].stats;
    if (before == kNone || !stats_rows_[static_cast<std::size_t>(before)].has_hash) continue;
    if (!lies_within_its_memory(unsure.tensor)) continue;
    const auto now = stats_of(unsure.tensor, /*hash=*/true);
    if (now && now->hash != stats_rows_[static_cast<std::size_t>(before)].hash)
      tensors.push_back(unsure.tensor);
  }
  return tensors;
}

}  // namespace nanquest::record
