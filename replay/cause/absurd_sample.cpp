#include "replay/cause/absurd_sample.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "probe/trace/origins.h"
#include "probe/trace/samples.h"
#include "replay/case/values.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr double kTimes = 100, kShare = 0.999;
/// Fewer numbers have no meaningful percentile.
constexpr std::int64_t kFewest = 50;
constexpr int kMaxSamplesTried = 4;
constexpr std::size_t kMaxParts = 32;  // of one memory: the frames and the target of one window

/// An outside tensor, or a part of it, as an op reads it first.
struct FirstRead {
  SlotId slot;
  OpId op;
  TensorId row;
};

bool is_same_part(const TraceGraph& graph, TensorId a, TensorId b) {
  const TensorRow &one = graph.tensor(a), &other = graph.tensor(b);
  return one.storage_offset == other.storage_offset && one.sizes == other.sizes &&
         one.strides == other.strides;
}

std::vector<FirstRead> outside_reads(const Case& c) {
  std::vector<FirstRead> found;
  const TraceGraph& graph = c.graph();
  for (const SlotId slot : ids_of<Slot>(c.doc())) {
    const Slot& memory = get(c.doc(), slot);
    if (!comes_with_batch(memory.origin) || memory.data.empty() || !dtype_is_float(memory.dtype)) continue;
    const std::size_t before = found.size();
    for (const TraceGraph::Read& read : graph.reads(slot)) {
      if (c.op_index() < read.op.row() || found.size() - before == kMaxParts) break;
      if (graph.producer(read.row, read.op) || graph.tensor(read.row).sizes.empty() ||
          graph.written(read.op).empty())  // a view
        continue;
      const bool known =
          std::any_of(found.begin() + static_cast<std::ptrdiff_t>(before), found.end(),
                      [&](const FirstRead& f) { return is_same_part(graph, f.row, read.row); });
      if (!known) found.push_back({slot, read.op, read.row});
    }
  }
  return found;
}

at::Tensor view_of(const at::Tensor& storage, const TensorRow& row) {
  return storage.contiguous().view({-1}).as_strided(row.sizes, row.strides, row.storage_offset);
}

/// The largest element, if it is far beyond the rest: its index in the flat tensor, and the percentile. The
/// rest are the other rows: a sample may hold many such values (cells that nobody filled).
std::optional<std::pair<std::int64_t, double>> far_beyond(const at::Tensor& values) {
  const at::Tensor size = wide(values).abs().flatten();
  if (size.numel() <= kFewest || !all_finite(size)) return std::nullopt;
  const std::int64_t at = size.argmax().item<std::int64_t>(), row = size.numel() / values.size(0);
  const std::int64_t begin = at / row * row;
  const at::Tensor others = at::cat({size.slice(0, 0, begin), size.slice(0, begin + row)});
  const at::Tensor sorted = std::get<0>(others.sort());
  const std::int64_t rest = others.numel();
  const double usual =
      sorted[std::min(rest - 1, static_cast<std::int64_t>(kShare * static_cast<double>(rest)))]
          .item<double>();
  if (!(usual > 0) || !(size[at].item<double>() > kTimes * usual)) return std::nullopt;
  return std::pair(at, usual);
}

RunOptions with_row(const FirstRead& read, const TensorRow& shape, std::int64_t to, std::int64_t from) {
  RunOptions options;
  options.edit.slot_edit[read.slot.row()] = [shape, to, from](at::Tensor& storage) {
    const at::Tensor view = storage.as_strided(shape.sizes, shape.strides, shape.storage_offset);
    view.select(0, to).copy_(view.select(0, from).clone());
  };
  return options;
}

AbsurdSample sample_of(const Case& c, const FirstRead& read, const at::Tensor& values, std::int64_t flat,
                       double usual) {
  const TensorRow& shape = c.graph().tensor(read.row);
  AbsurdSample s;
  s.name = get(c.doc(), read.slot).name;
  s.reader = read.op.row();
  s.usual = usual;
  s.place.resize(shape.sizes.size());
  for (std::size_t d = shape.sizes.size(); d-- > 0; flat /= shape.sizes[d])
    s.place[d] = flat % shape.sizes[d];
  s.row = s.place.front();
  s.value = wide(values.select(0, s.row)).abs().max().item<double>();
  const std::int64_t stride = shape.strides.front(), rows = shape.sizes.front();
  const auto all = static_cast<std::int64_t>(get(c.doc(), read.slot).bytes / dtype_size(shape.dtype));
  if (stride > 0 && all > rows * stride && shape.storage_offset % stride == 0)
    s.row_in_memory = shape.storage_offset / stride + s.row;
  s.is_sample = rows == batch_size(c.doc());
  const std::int64_t donor = (s.row + 1) % rows, other = (s.row + 2) % rows;
  const std::string what =
      (s.is_sample ? "sample " : "row ") + std::to_string(s.row) + (s.name.empty() ? "" : " of " + s.name);
  s.without.text = what + " replaced by " + (s.is_sample ? "sample " : "row ") + std::to_string(donor);
  s.without.kind = ChangeKind::data;
  s.without.price = Price::data_repair;
  s.without.options = with_row(read, shape, s.row, donor);
  if (rows > 2) {
    s.without.placebo = {with_row(read, shape, other, donor)};
    s.without.placebo_text = (s.is_sample ? "sample " : "row ") + std::to_string(other) + " replaced instead";
  }
  return s;
}

}  // namespace

std::optional<AbsurdSample> absurd_sample(const Case& c) {
  TwinRun* const twin = c.twin();
  if (!c.op() || !twin || !twin->there()) return std::nullopt;
  int tried = 0;
  for (const FirstRead& read : outside_reads(c)) {
    const auto storage = c.read(get(c.doc(), read.slot).data);
    const TensorRow& shape = c.graph().tensor(read.row);
    if (!storage || shape.sizes.front() < 2) continue;
    const at::Tensor values = view_of(*storage, shape);
    const auto found = far_beyond(values);
    if (!found) continue;
    if (twin->health() != TwinRun::Health::well || ++tried > kMaxSamplesTried || !c.has_time())
      return std::nullopt;
    AbsurdSample sample = sample_of(c, read, values, found->first, found->second);
    if (run_change(c, sample.without) == TrialResult::finite) return sample;
  }
  return std::nullopt;
}

}  // namespace nanquest
