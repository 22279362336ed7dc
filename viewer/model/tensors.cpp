#include "viewer/model/tensors.h"

#include <algorithm>
#include <map>

#include "probe/numerics/hash.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

constexpr std::uint64_t kChunk = 4ull << 20;  // elements read at a time
static_assert(kChunk % kHashBlock == 0);
constexpr std::uint64_t kSliceElements = 16ull << 20;
constexpr std::int64_t kWrap = 64;  // row length of a one-dimensional tensor

std::string group_of(const std::string& path) {
  const std::string head = path.substr(0, path.find('/'));
  return head == "trace" ? "step data" : head == "values" ? kReplayedGroup : head;
}

int group_rank(const std::string& group) {
  constexpr const char* order[] = {"parameters", "buffers", "batch", "step data", "optimizer"};
  return static_cast<int>(std::ranges::find(order, group) - std::begin(order));
}

}  // namespace

std::uint64_t element_count(const std::vector<std::int64_t>& shape) {
  std::uint64_t n = 1;
  for (const std::int64_t d : shape) n *= static_cast<std::uint64_t>(std::max<std::int64_t>(d, 0));
  return n;
}

Result<std::vector<StoredTensor>> list_tensors(const SnapshotReader& reader) {
  Result<std::vector<TensorInfo>> infos = reader.tensors();
  if (!infos) return infos.error();
  std::map<std::string, std::string> names;
  const SnapshotDoc& doc = reader.doc();
  for (const Slot& slot : doc.slots)
    if (!slot.data.empty() && !slot.name.empty()) names[slot.data] = slot.name;
  for (const auto* list : {&doc.parameters, &doc.buffers, &doc.optimizer, &doc.batch})
    for (const NamedTensor& tensor : *list) names[tensor.data] = tensor.name;
  std::vector<StoredTensor> out;
  for (const TensorInfo& t : *infos) {
    if (t.path.rfind("rng/", 0) == 0) continue;  // generator states are no numbers to look at
    const auto named = names.find(t.path);
    out.push_back({t.path, named != names.end() ? named->second : t.path.substr(t.path.find('/') + 1),
                   group_of(t.path), t.dtype, t.shape, t.bytes});
  }
  std::stable_sort(out.begin(), out.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return group_rank(a.group) < group_rank(b.group);
  });
  return out;
}

std::string largest_text(const ScanResult& s) {
  if (s.count == 0) return "-";
  return s.non_finite() >= s.count ? "none is finite" : short_number(s.amax);
}

std::string smallest_text(const ScanResult& s) {
  const bool none = s.non_finite() + s.zero >= s.count;
  if (none) return s.zero > 0 ? "all are zero" : largest_text(s);
  return s.amin_nonzero > 0 ? short_number(s.amin_nonzero) : "-";  // unknown for whole numbers
}

std::string not_finite_text(const TensorDetail& d) {
  const std::string bad = bad_text(d.scan.nan, d.scan.pos_inf, d.scan.neg_inf);
  if (bad.empty()) return d.partial ? "none of those that were read" : "none";
  return bad + (d.scan.first_bad >= 0 ? ", first at " + std::to_string(d.scan.first_bad) : "");
}

Status read_chunks(const SnapshotReader& reader, const StoredTensor& tensor, std::uint64_t max_elements,
                   Progress* progress, const ChunkVisit& visit) {
  const std::uint64_t total = element_count(tensor.shape), wanted = std::min(total, max_elements);
  HashState hash;
  if (progress != nullptr) progress->expect(wanted * dtype_size(tensor.dtype));
  for (std::uint64_t at = 0; at < wanted; at += kChunk) {
    if (progress != nullptr && progress->stopped())
      return Error{ErrorCode::io, tensor.path + ": reading was stopped", ""};
    Result<TensorData> data = reader.read_range(tensor.path, at, std::min(kChunk, wanted - at));
    if (!data) return data.error();
    visit(*data, at);
    if (progress != nullptr) progress->advance(data->bytes.size());
    if (at + kChunk < wanted)
      hash.add_blocks(data->bytes.data(), data->bytes.size() / kHashBlock);
    else if (wanted == total)
      if (Status good = reader.check(tensor.path, hash.finish(data->bytes.data(), data->bytes.size())); !good)
        return good;
  }
  return {};
}

Result<TensorDetail> load_detail(const SnapshotReader& reader, const StoredTensor& tensor,
                                 std::uint64_t max_elements, Progress* progress) {
  TensorDetail out;
  out.tensor = tensor;
  out.partial = max_elements < element_count(tensor.shape);
  if (dtype_is_float(tensor.dtype)) out.fits.emplace();
  const auto count = [&](const TensorData& data, std::uint64_t) {
    const std::size_t n = data.bytes.size() / dtype_size(data.dtype);
    out.scan.merge(scan(data.dtype, data.bytes.data(), n, &out.histogram));
    if (out.fits) for_each_value(data, [&](double x) { out.fits->add(x); });
  };
  if (Status read = read_chunks(reader, tensor, max_elements, progress, count); !read) return read.error();
  return out;
}

std::int64_t plane_holding(const std::vector<std::int64_t>& shape, std::uint64_t element) {
  if (shape.size() < 2 || element_count(shape) == 0) return 0;
  const std::uint64_t area = element_count({shape.end() - 2, shape.end()});
  return static_cast<std::int64_t>(element / area);
}

std::optional<std::pair<std::int64_t, std::int64_t>> TensorSlice::cell_of(std::uint64_t element) const {
  if (element < first || element - first >= static_cast<std::uint64_t>(rows * columns)) return std::nullopt;
  const auto within = static_cast<std::int64_t>(element - first);
  return std::pair(within / columns * cell_rows / rows, within % columns * cell_columns / columns);
}

Result<TensorSlice> load_slice(const SnapshotReader& reader, const StoredTensor& tensor, std::int64_t plane,
                               std::int64_t max_cells) {
  TensorSlice out;
  const std::uint64_t total = element_count(tensor.shape);
  if (total == 0 || max_cells < 1) return out;
  const std::size_t rank = tensor.shape.size();
  if (rank >= 2) {
    out.rows = tensor.shape[rank - 2];
    out.columns = tensor.shape[rank - 1];
    out.planes = static_cast<std::int64_t>(
        total / (static_cast<std::uint64_t>(out.rows) * static_cast<std::uint64_t>(out.columns)));
  } else {
    const auto n = static_cast<std::int64_t>(total);
    out.columns = std::min(n, kWrap);
    out.rows = (n + out.columns - 1) / out.columns;
    out.wrapped = n > kWrap;
  }
  out.plane = std::clamp<std::int64_t>(plane, 0, out.planes - 1);
  const std::uint64_t area = static_cast<std::uint64_t>(out.rows) * static_cast<std::uint64_t>(out.columns);
  out.first = static_cast<std::uint64_t>(out.plane) * area;
  std::uint64_t count = std::min(area, total - out.first);
  if (count > kSliceElements) {
    count = kSliceElements;
    out.partial = true;
    out.columns = std::min<std::int64_t>(out.columns, static_cast<std::int64_t>(count));
    out.rows = static_cast<std::int64_t>(count) / out.columns;
  }
  Result<TensorData> data = reader.read_range(tensor.path, out.first, count);
  if (!data) return data.error();
  out.cell_rows = std::min(out.rows, max_cells);
  out.cell_columns = std::min(out.columns, max_cells);
  out.cells.resize(static_cast<std::size_t>(out.cell_rows * out.cell_columns));
  std::int64_t at = 0;
  for_each_value(*data, [&](double x) {
    const std::int64_t r = at / out.columns, c = at % out.columns;
    ++at;
    if (r < out.rows)
      out.cells[static_cast<std::size_t>(r * out.cell_rows / out.rows * out.cell_columns +
                                         c * out.cell_columns / out.columns)]
          .add(x);
  });
  return out;
}

}  // namespace nanquest::viewer
