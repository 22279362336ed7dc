/// The tensors stored in a snapshot: list, statistics, exponent histogram against the number formats, slices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/base/result.h"
#include "probe/numerics/fit.h"
#include "probe/numerics/scan.h"
#include "probe/snapshot/reader.h"
#include "viewer/model/progress.h"
#include "viewer/model/pyramid.h"

namespace nanquest::viewer {

/// The group of the culprit's values, as nanquest-replay wrote them.
inline constexpr const char* kReplayedGroup = "replayed";

/// One stored tensor.
struct StoredTensor {
  std::string path;   ///< in the file: "parameters/blocks.0.mlp.weight"
  std::string name;   ///< for people: "blocks.0.mlp.weight"
  std::string group;  ///< "parameters", "buffers", "optimizer", "batch", "step data", "replayed"
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

struct TensorDetail {
  StoredTensor tensor;
  ScanResult scan;
  ExponentHistogram histogram{};
  std::optional<FitCounts> fits;  ///< in other formats; nothing for integers, bool and complex numbers
  bool partial = false;           ///< only the first `scan.count` elements were read
};

/// "2 NaN, 17 +Inf, first at 70", "none", or that only a part was looked at.
std::string not_finite_text(const TensorDetail& detail);

/// The largest and the smallest non-zero |x| among the finite values; "none is finite" where there is none.
std::string largest_text(const ScanResult& scan);
std::string smallest_text(const ScanResult& scan);

/// A plane of the last two dimensions, reduced to cells. One-dimensional tensors are wrapped into rows.
struct TensorSlice {
  std::int64_t rows = 0, columns = 0;  ///< of the plane
  std::int64_t planes = 1, plane = 0;  ///< leading dimensions, flattened
  std::int64_t cell_rows = 0, cell_columns = 0;
  std::uint64_t first = 0;  ///< the element of the tensor that it begins with
  bool wrapped = false, partial = false;
  std::vector<Extremes> cells;  ///< cell_rows × cell_columns, of the values themselves
  const Extremes& at(std::int64_t r, std::int64_t c) const { return cells[r * cell_columns + c]; }
  /// Row and column of the cell that holds an element of the tensor; nothing if none does.
  std::optional<std::pair<std::int64_t, std::int64_t>> cell_of(std::uint64_t element) const;
};
/// The plane that holds an element of a tensor of that shape.
std::int64_t plane_holding(const std::vector<std::int64_t>& shape, std::uint64_t element);

/// Every tensor in the file, parameters first, names filled from the tables.
Result<std::vector<StoredTensor>> list_tensors(const SnapshotReader& reader);

inline constexpr std::uint64_t kReadElements = 64ull << 20;  ///< of a tensor, unless others are asked for

/// Elements of a tensor of that shape; a negative size counts as 0.
std::uint64_t element_count(const std::vector<std::int64_t>& shape);

/// Elements in order, starting with number `first`.
using ChunkVisit = std::function<void(const TensorData& data, std::uint64_t first)>;
/// Reads up to `max_elements` of `tensor`, some millions at a time. Errors are the reader's; a tensor that
/// was read completely is checked against its checksum. `progress` advances by the bytes; if told to stop:
/// `io`.
Status read_chunks(const SnapshotReader& reader, const StoredTensor& tensor, std::uint64_t max_elements,
                   Progress* progress, const ChunkVisit& visit);

/// Reads up to `max_elements` of `tensor` and counts; errors as above.
Result<TensorDetail> load_detail(const SnapshotReader& reader, const StoredTensor& tensor,
                                 std::uint64_t max_elements = kReadElements, Progress* progress = nullptr);

/// Reads one plane (cut to the range) and reduces it to at most `max_cells` cells per side.
Result<TensorSlice> load_slice(const SnapshotReader& reader, const StoredTensor& tensor, std::int64_t plane,
                               std::int64_t max_cells = 96);

/// Calls `visit(value)` for each element of a real float, integer or bool tensor, in order.
template <class Visit>
void for_each_value(const TensorData& data, Visit&& visit);

}  // namespace nanquest::viewer

#include "viewer/model/values.inl"
