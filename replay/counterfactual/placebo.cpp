#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

/// Elements that an op wrote, if its first written tensor is of a float type; 0 otherwise.
std::int64_t float_elements(const SnapshotDoc& doc, const OpRow& op) {
  if (op.written_count == 0 || (op.flags & (kOpUninitialised | kOpHostWrite | kOpOpaque | kOpFailed)))
    return 0;
  const TensorRow& t = doc.tensors[doc.written[op.first_written]];
  if (!dtype_is_float(t.dtype)) return 0;
  std::int64_t n = 1;
  for (std::int64_t s : t.sizes) n *= s;
  return n;
}

/// True if `path` is `other`, contains it or lies inside it.
bool related(const std::string& path, const std::string& other) {
  const auto inside = [](const std::string& child, const std::string& parent) {
    return child == parent || parent.empty() ||
           (child.size() > parent.size() && child.compare(0, parent.size(), parent) == 0 &&
            child[parent.size()] == '.');
  };
  return inside(path, other) || inside(other, path);
}

/// Ops whose change could matter: the culprit, those from which its inputs were computed, and the readers of
/// its result. An op that only shares a far ancestor's module may still be chosen as a placebo.
std::set<std::int32_t> relevant_ops(const Case& c, std::int32_t op) {
  std::set<std::int32_t> relevant = {op};
  for (std::int32_t i : c.readers(op)) relevant.insert(i);
  for (std::int32_t i : c.culprit().lineage) relevant.insert(i);
  if (const std::int32_t f = c.forward_of(op); f != kNone) relevant.insert(f);
  for (const Case::TensorArgument& a : c.tensor_arguments(op))
    if (const std::int32_t p = c.producer(a.tensor, op); p != kNone) relevant.insert(p);
  return relevant;
}

/// Everything from which `op` was computed, as far back as the trace goes.
std::set<std::int32_t> ancestors(const Case& c, std::int32_t op) {
  std::set<std::int32_t> found;
  std::vector<std::int32_t> open = {op};
  while (!open.empty()) {
    const std::int32_t next = open.back();
    open.pop_back();
    for (const Case::TensorArgument& a : c.tensor_arguments(next))
      if (const std::int32_t p = c.producer(a.tensor, next); p != kNone && found.insert(p).second)
        open.push_back(p);
  }
  return found;
}

}  // namespace

std::int32_t placebo_op(const Case& c, std::int32_t op) {
  const OpRow* wanted = c.row(op);
  if (!wanted) return kNone;
  const SnapshotDoc& doc = c.doc();
  const std::set<std::int32_t> relevant = relevant_ops(c, op), before = ancestors(c, op);
  const std::int64_t size = std::max<std::int64_t>(1, float_elements(doc, *wanted));
  std::int32_t best = kNone;
  double best_score = -1;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i) {
    const std::int64_t n = float_elements(doc, doc.ops[i]);
    if (n == 0 || relevant.count(i) || c.tensor_arguments(i).empty()) continue;
    // Ops from which the culprit was computed come first, because a change there could help: a placebo that
    // cannot help says nothing. Then the same op elsewhere is best, then the same phase, then the nearest
    // size.
    const double ratio = static_cast<double>(std::min(n, size)) / static_cast<double>(std::max(n, size));
    const double score = ratio + (doc.ops[i].name == wanted->name ? 4 : 0) +
                         (doc.ops[i].phase == wanted->phase ? 2 : 0) + (before.count(i) ? 8 : 0);
    if (score > best_score) best_score = score, best = i;
  }
  return best;
}

std::int32_t placebo_slot(const Case& c, std::int32_t slot) {
  const std::vector<Slot>& slots = c.doc().slots;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (static_cast<std::int32_t>(i) != slot && !slots[i].data.empty() && dtype_is_float(slots[i].dtype))
      return static_cast<std::int32_t>(i);
  return kNone;
}

std::string placebo_module(const Case& c, const std::string& path) {
  const std::string guilty = c.module_of(c.op_index());
  std::map<std::string, std::int64_t> sizes;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    const std::string module = c.module_of(i);
    if (!module.empty()) sizes[module] += float_elements(c.doc(), c.doc().ops[i]);
  }
  std::string best;
  std::int64_t best_size = 0;
  for (const auto& [module, size] : sizes)
    if (!related(module, path) && !related(module, guilty) && size > best_size)
      best = module, best_size = size;
  return best;
}

void zero_non_finite(const at::Tensor& t) {
  if (t.defined() && can_be_bad(t)) t.masked_fill_(bad_mask(t), 0);
}

at::Tensor spread_choice(const at::Tensor& from, std::int64_t count) {
  const at::Tensor places = from.flatten().nonzero().flatten();
  const std::int64_t n = std::min(count, places.numel());
  at::Tensor mask = at::zeros({from.numel()}, at::kBool);
  if (n > 0)
    mask.index_fill_(0, places.index({at::floor_divide(at::arange(n, at::kLong) * places.numel(), n)}), true);
  return mask.view(from.sizes());
}

std::int64_t write_elsewhere(const at::Tensor& t, const Write& write) {
  const at::Tensor before = t.clone();
  write(t);
  const at::Tensor after = t.clone();
  t.copy_(before);
  const at::Tensor same =
      at::logical_or(before == after, at::logical_and(at::isnan(before), at::isnan(after)));
  const at::Tensor put = after.masked_select(at::logical_not(same));
  const at::Tensor mask = spread_choice(at::logical_and(same, at::isfinite(before)), put.numel());
  t.masked_scatter_(mask, put);
  return count_true(mask);
}

void add_precision_placebo(const Case& c, Change& change, std::int32_t op, Precision precision) {
  RunOptions options;
  if (change.size >= ChangeSize::module) {
    const std::string path = change.options.edit.module_precision.empty()
                                 ? c.module_of(op)
                                 : change.options.edit.module_precision.begin()->first;
    if (const std::string other = placebo_module(c, path); !other.empty()) {
      options.edit.module_precision[other] = precision;
      change.placebo = {options};
      change.placebo_text = "module " + other + " in " + precision_text(precision);
      return;
    }
  }
  const std::int32_t other = placebo_op(c, op);
  if (other == kNone) return;
  options.edit.op_precision[other] = precision;
  if (change.size >= ChangeSize::neighbours)
    for (std::int32_t reader : c.readers(other))
      if (!change.options.edit.op_precision.count(reader)) options.edit.op_precision[reader] = precision;
  change.placebo = {options};
  change.placebo_text = c.op_with_number(other) + " in " + precision_text(precision);
}

}  // namespace nanquest
