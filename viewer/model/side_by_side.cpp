#include "viewer/model/side_by_side.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <ranges>
#include <utility>

#include "viewer/model/elements.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kRecorded = 0, kFp32 = 1, kFp64 = 2;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool is_output(const std::string& name) {
  return name.starts_with("output");
}

const StoredTensor* tensor_at(const OpenIncident& incident, const std::string& path) {
  const auto found = std::ranges::find(incident.tensors, path, &StoredTensor::path);
  return path.empty() || found == incident.tensors.end() ? nullptr : &*found;
}

/// All elements of a tensor as doubles; an error in words.
std::string read_values(const OpenIncident& incident, const StoredTensor& tensor, Progress* progress,
                        std::vector<double>& out) {
  const std::uint64_t count = element_count(tensor.shape);
  if (dtype_is_complex(tensor.dtype)) return tensor.path + ": complex numbers are not compared";
  out.reserve(static_cast<std::size_t>(count));
  const Status read = read_chunks(incident.reader_of(tensor), tensor, count, progress,
                                  [&](const TensorData& data, std::uint64_t) {
                                    for_each_value(data, [&](double value) { out.push_back(value); });
                                  });
  return read ? "" : read.error().text();
}

/// Those of [0, total) that are worst, by other finiteness and by distance.
std::vector<SideBySide::Row> worst_rows(const std::vector<double>& recorded, const std::vector<double>& other,
                                        SideBySide& out) {
  std::vector<SideBySide::Row> rows;
  const auto worse = [](const SideBySide::Row& a, const SideBySide::Row& b) {
    if (a.changes != b.changes) return a.changes;
    const double x = std::isnan(a.difference) ? -1 : std::abs(a.difference);
    const double y = std::isnan(b.difference) ? -1 : std::abs(b.difference);
    return x != y ? x > y : a.element < b.element;
  };
  for (std::uint64_t i = 0; i < out.total; ++i) {
    const double a = recorded.empty() ? kNan : recorded[i], b = other.empty() ? kNan : other[i];
    SideBySide::Row row;
    row.element = i;
    row.changes = !recorded.empty() && !other.empty() && std::isfinite(a) != std::isfinite(b);
    row.difference = std::isfinite(a) && std::isfinite(b) ? a - b : kNan;
    out.changed += row.changes ? 1 : 0;
    if (!std::isnan(row.difference)) out.largest = std::max(out.largest, std::abs(row.difference));
    // A heap of the worst, its mildest on top.
    if (rows.size() == kMostRows && !worse(row, rows.front())) continue;
    if (rows.size() == kMostRows) {
      std::ranges::pop_heap(rows, worse);
      rows.pop_back();
    }
    rows.push_back(row);
    std::ranges::push_heap(rows, worse);
  }
  std::ranges::sort_heap(rows, worse);
  return rows;
}

}  // namespace

std::vector<CulpritValues> culprit_values(const OpenIncident& incident) {
  std::vector<CulpritValues> all;
  const std::string before = replayed_values_of(incident.doc.culprit.op);
  // Asked in every frame: those of the replay stand last.
  auto first = incident.tensors.end();
  while (first != incident.tensors.begin() && std::prev(first)->group == kReplayedGroup) --first;
  for (auto stored = first; stored != incident.tensors.end(); ++stored) {
    const StoredTensor& tensor = *stored;
    if (!tensor.path.starts_with(before)) continue;
    const std::size_t slash = tensor.path.rfind('/');
    if (slash < before.size()) continue;
    const std::string name = tensor.path.substr(before.size(), slash - before.size());
    const auto run = std::ranges::find(kReplayedRuns, tensor.path.substr(slash + 1));
    if (run == kReplayedRuns.end()) continue;
    auto at = std::ranges::find(all, name, &CulpritValues::name);
    if (at == all.end()) at = all.insert(all.end(), {name, {}});
    at->paths[static_cast<std::size_t>(run - kReplayedRuns.begin())] = tensor.path;
  }
  std::stable_sort(all.begin(), all.end(), [](const CulpritValues& a, const CulpritValues& b) {
    return is_output(a.name) < is_output(b.name);
  });
  return all;
}

std::string shown_values(const std::vector<CulpritValues>& values, const std::string& selected) {
  for (const CulpritValues& value : values)
    if (!selected.empty() && std::ranges::find(value.paths, selected) != value.paths.end()) return value.name;
  const auto output = std::ranges::find_if(values, [](const CulpritValues& v) { return is_output(v.name); });
  return output != values.end() ? output->name : values.empty() ? "" : values.front().name;
}

std::string missing_text(const OpenIncident& incident, const std::vector<CulpritValues>& values) {
  std::string makes = "not held by the file: replay makes them (nanquest-replay SNAPSHOT)";
  if (values.empty() && incident.doc.culprit.op == kNone) return "no op is known to be the culprit";
  if (values.empty() && !incident.replayed) return makes;
  if (values.empty())
    return "the replay kept none: values of more than " + bytes_text(kMostReplayedBytes) + " are left out";
  const auto lacks = [](const CulpritValues& value) {
    return std::ranges::any_of(value.paths, [](const std::string& path) { return path.empty(); });
  };
  return std::ranges::any_of(values, lacks) ? "some are " + makes : "";
}

SideBySide load_side_by_side(const OpenIncident& incident, const CulpritValues& values, Progress* progress) {
  SideBySide out;
  out.name = values.name;
  std::array<std::vector<double>, kReplayedRuns.size()> runs;
  const StoredTensor* shaped = nullptr;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const StoredTensor* tensor = tensor_at(incident, values.paths[run]);
    if (tensor == nullptr) continue;
    if (shaped == nullptr) shaped = tensor;
    if (tensor->shape != shaped->shape) {
      out.error = tensor->path + ": has another shape than " + shaped->path;
      return out;
    }
    if (progress != nullptr) progress->expect(tensor->bytes);
    out.error = read_values(incident, *tensor, progress, runs[run]);
    if (!out.error.empty()) return out;
    out.held[run] = true;
  }
  if (shaped == nullptr) return out;
  out.total = element_count(shaped->shape);
  for (std::size_t run = 0; run < runs.size(); ++run)
    if (out.held[run] && runs[run].size() != out.total) {
      out.error = values.paths[run] + ": holds fewer elements than its shape says";
      return out;
    }
  out.rows = worst_rows(runs[kRecorded], out.held[kFp64] ? runs[kFp64] : runs[kFp32], out);
  for (SideBySide::Row& row : out.rows) {
    row.position = position_of(row.element, shaped->shape);
    for (std::size_t run = 0; run < runs.size(); ++run)
      row.values[run] = out.held[run] ? runs[run][row.element] : kNan;
  }
  return out;
}

std::string row_difference(const SideBySide::Row& row) {
  return row.changes                  ? "finite in one alone"
         : std::isnan(row.difference) ? "-"
                                      : short_number(row.difference);
}

std::string difference_text(const SideBySide& shown) {
  if (!shown.error.empty()) return shown.error;
  if (!shown.held[kRecorded] || !(shown.held[kFp32] || shown.held[kFp64])) return "";
  const std::string of = shown.held[kFp64] ? "fp64" : "fp32";
  const std::string most = "differ by at most " + short_number(shown.largest);
  if (shown.changed == 0)
    return "as recorded and in " + of + " the same elements of " + grouped(shown.total) +
           " are finite; they " + most;
  return grouped(shown.changed) + " of " + counted(shown.total, "element") +
         " are finite in only one of recorded and " + of + "; those finite in both " + most;
}

}  // namespace nanquest::viewer
