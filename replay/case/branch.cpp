#include "replay/case/branch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "replay/blame/choice.h"
#include "replay/case/derivative.h"
#include "replay/case/values.h"

namespace nanquest {
namespace {

bool same_node(const OpRow& a, const OpRow& b) {
  return a.phase == Phase::backward && b.phase == Phase::backward && !a.node.empty() && a.node == b.node &&
         a.sequence == b.sequence && a.micro_batch == b.micro_batch;
}

/// The first of `outputs` that `mask` can be a mask of; null if there is none.
const at::Tensor* masked_output(const std::vector<at::Tensor>& outputs, const at::Tensor& mask) {
  for (const at::Tensor& t : outputs)
    if (t.defined() && t.is_floating_point() && t.sizes() == mask.sizes()) return &t;
  return nullptr;
}

/// The value of `loss` in fp64 when the masked elements of the result of `forward` are changed as in
/// `change`.
std::optional<at::Tensor> loss_with(const Case& c, std::int32_t forward, std::int32_t loss,
                                    const at::Tensor& mask,
                                    const std::function<at::Tensor(const at::Tensor&)>& change) {
  std::optional<at::Tensor> value;
  RunOptions options;
  options.precision = Precision::fp64;
  options.scan = false;
  options.stop_after = loss;
  if (change)
    options.edit.output_edit[forward] = [&](std::vector<at::Tensor>& written) {
      const at::Tensor* made = masked_output(written, mask);
      if (made) at::Tensor(*made).copy_(at::where(mask, change(*made), *made));
    };
  options.on_op = [&](std::int32_t at, const std::vector<at::Tensor>& outputs) {
    if (at == loss && !outputs.empty() && outputs[0].defined()) value = outputs[0].detach().clone();
  };
  const RunResult run = c.run(options);
  return run.failed == 0 ? value : std::nullopt;
}

/// At most this many ops are searched for the place where the selection must come first.
constexpr std::size_t kMaxBehind = 12;

/// The result of `forward` ends, as something finite, in an op that selects by value.
bool is_chosen_by_value(const Case& c, std::int32_t forward) {
  constexpr int kHops = 8;
  const std::set<std::int32_t> readers = c.readers_within(forward, kHops);
  return std::any_of(readers.begin(), readers.end(), [&](std::int32_t reader) {
    return chooses_by_value(*c.row(reader)) && c.graph().read_counts(OpId{reader}).total() > 0 &&
           c.graph().written_counts(OpId{reader}).total() == 0;
  });
}

}  // namespace

std::vector<std::int32_t> node_ops(const Case& c, std::int32_t op) {
  std::vector<std::int32_t> found;
  const OpRow* wanted = c.row(op);
  if (!wanted || wanted->phase != Phase::backward) return found;
  const std::vector<OpRow>& ops = c.doc().ops;
  std::size_t first = static_cast<std::size_t>(op), last = first;
  while (first > 0 && same_node(ops[first - 1], *wanted)) --first;
  while (last + 1 < ops.size() && same_node(ops[last + 1], *wanted)) ++last;
  for (std::size_t i = first; i <= last; ++i) found.push_back(static_cast<std::int32_t>(i));
  return found;
}

std::vector<std::int32_t> derivative_ops(const Case& c, std::int32_t forward) {
  std::vector<std::int32_t> found;
  for (std::int32_t i = forward + 1; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i)
    if (c.doc().ops[static_cast<std::size_t>(i)].phase == Phase::backward && c.forward_of(i) == forward)
      found.push_back(i);
  return found;
}

std::vector<at::Tensor> incoming_gradients(const Case& c, std::int32_t op) {
  std::vector<at::Tensor> found;
  std::set<std::int32_t> makers;
  const std::vector<std::int32_t> node = node_ops(c, op);
  for (const std::int32_t i : node) {
    const std::vector<Case::TensorArgument> arguments = c.tensor_arguments(i);
    for (const Case::TensorArgument& a : arguments) {
      const std::int32_t maker = c.producer(a.tensor, i);
      const OpRow* made = c.row(maker);
      // Backward starts from ones that were made just before it.
      const bool start = made && plain_name(*made) == "ones_like";
      if (!made || maker >= node.front() || (made->flags & kOpRecompute) ||
          (made->phase != Phase::backward && !start) || !makers.insert(a.tensor).second)
        continue;
      const std::vector<c10::IValue>& values = c.values(i).arguments;
      const auto position = static_cast<std::size_t>(a.position);
      const at::Tensor t = position < values.size() ? tensor_of(values[position]) : at::Tensor();
      if (t.defined() && t.is_floating_point()) found.push_back(t);
    }
  }
  return found;
}

bool sent_zero(const Case& c, std::int32_t op, const at::Tensor& bad,
               const std::vector<std::int64_t>& reduced) {
  const std::vector<at::Tensor> gradients = incoming_gradients(c, op);
  for (const at::Tensor& g : gradients)
    if (!covers(wide(g) == 0, bad, reduced)) return false;
  return !gradients.empty();
}

std::int32_t loss_after(const Case& c, std::int32_t forward) {
  std::int32_t start = kNone;
  for (std::int32_t i = forward + 1; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    const OpRow& op = *c.row(i);
    if (plain_name(op) == "ones_like") start = i;
    if (op.phase == Phase::backward && !(op.flags & kOpRecompute)) break;
  }
  if (start != kNone)
    for (const Case::TensorArgument& a : c.tensor_arguments(start)) {
      const std::int32_t maker = c.producer(a.tensor, start);
      if (maker != kNone) return maker;
    }
  return c.doc().loss == kNone ? kNone
                               : c.producer(c.doc().loss, static_cast<std::int32_t>(c.doc().ops.size()));
}

bool loss_ignores(const Case& c, std::int32_t forward, const at::Tensor& mask, bool by_value) {
  const std::int32_t loss = loss_after(c, forward);
  if (loss == kNone || loss <= forward || count_true(mask) == 0) return false;
  const at::Tensor* made = masked_output(c.values(forward).outputs, mask);
  if (!made) return false;
  const auto as_it_is = loss_with(c, forward, loss, mask, {});
  if (!as_it_is || !all_finite(*as_it_is)) return false;
  const auto same_with = [&](const std::function<at::Tensor(const at::Tensor&)>& change) {
    const auto value = loss_with(c, forward, loss, mask, change);
    return value && at::equal(*value, *as_it_is);
  };
  const bool finite = count_true(at::logical_and(mask, bad_mask(*made))) == 0;
  // A maximum ignores what is far below another element: much lower makes no difference, nor does a little
  // higher. A value exactly at the threshold (relu at 0) is used.
  const auto moved = [&](double sign, double share, double step) {
    return same_with([=](const at::Tensor& y) { return y + sign * (share * y.abs() + step); });
  };
  if (finite) return (moved(-1, 1, 1) && moved(+1, 1e-6, 1e-9)) || (moved(+1, 1, 1) && moved(-1, 1e-6, 1e-9));
  if (same_with([](const at::Tensor& y) { return at::full_like(y, 0.75); }) &&
      same_with([](const at::Tensor& y) { return at::full_like(y, -3); }))
    return true;
  const auto as_large = [&](double size) {
    return same_with([=](const at::Tensor& y) { return at::nan_to_num(y, 0.75, size, -size); });
  };
  return by_value && is_chosen_by_value(c, forward) && as_large(1e20) && as_large(1e25);
}

std::vector<std::int32_t> singular_behind(const Case& c, std::int32_t forward, const at::Tensor& mask) {
  std::vector<std::int32_t> open = {forward}, found;
  for (std::size_t i = 0; i < open.size() && open.size() < kMaxBehind; ++i)
    for (const Case::TensorArgument& a : c.tensor_arguments(open[i])) {
      const std::int32_t maker = c.producer(a.tensor, open[i]);
      if (!c.row(maker) ||
          at::IntArrayRef(c.doc().tensors[static_cast<std::size_t>(a.tensor)].sizes) != mask.sizes() ||
          std::find(open.begin(), open.end(), maker) != open.end())
        continue;
      open.push_back(maker);
      const std::vector<std::int32_t> derivative = derivative_ops(c, maker);
      if (std::any_of(derivative.begin(), derivative.end(), [&](std::int32_t op) {
            return c.graph().written_counts(OpId{op}).total() > 0 &&
                   c.graph().read_counts(OpId{op}).total() == 0;
          }))
        found.push_back(maker);
    }
  return found;
}

}  // namespace nanquest
