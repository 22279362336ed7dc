/// History: the flight recorder. A ring of the last steps' numbers, in memory, of fixed size.
///
/// Six tables with one row a step: "scalars" (columns below, then the user's own) and "grad_norm",
/// "weight_norm", "update_ratio", "grad_amax", "weight_amax" with one column a layer. A layer is a
/// parameter's name without its last component ("fc.weight" is of layer "fc"; a name without a dot
/// is its own layer).
///
/// grad_norm     L2 norm of the layer's unscaled gradients; Inf or NaN in a bad step
/// grad_amax     largest |gradient| (the guard sees no activations; their ranges are in a snapshot's trace)
/// weight_norm   L2 norm of the layer's weights after the step
/// weight_amax   largest |weight| after the step
/// update_ratio  ‖w after − w before‖ / ‖w before‖, from samples of large tensors; 0 if w was all zero
///
/// Weights aren't measured at every step of a large model: the scalar "measured" is 1 in rows where
/// they were. Where it is 0 (also in the row of a step that was undone) weight_norm, weight_amax and
/// update_ratio repeat the last measured value.
/// The scalar "seconds" runs from the start of a step to the end of `after_update`, or to the next step.
/// "resident" and "device_peak" are bytes (memory_use.h), read at most a few times a second and repeated in
/// between. "probe_share": of the time of a step inside the probe's own functions (own_time.h);
/// "watch_share": of the time that watched steps take longer than others (watch_spacing.h). Each is the last
/// measurement, NaN before the first and where nothing measures it. User columns keep their last value until
/// it is logged again, NaN before the first. After construction no step allocates, but for sample ids longer
/// than any before. One thread.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probe/snapshot/model.h"
#include "probe/snapshot/scalars.h"

namespace nanquest {

/// Columns of "scalars", in the order of kScalarNames.
enum class Scalar : std::uint8_t {
  step,
  loss,
  lr,
  scale,
  gate,
  grad_norm,
  grad_amax,
  bad_gradients,
  seconds,
  measured,
  resident,
  device_peak,
  probe_share,
  watch_share
};
inline constexpr std::size_t kScalars = std::size(kScalarNames);

/// The tables after "scalars", in their order.
enum class LayerTable : std::uint8_t { grad_norm, weight_norm, update_ratio, grad_amax, weight_amax };
inline constexpr std::size_t kLayerTables = 5;

class History {
 public:
  /// Keeps `rows` steps (at least 1).
  History(int rows, const std::vector<std::string>& layers, const std::vector<std::string>& user_columns);

  /// Starts the row of the next step: repeating columns are taken over, the rest is 0.
  void begin_row();
  /// Whether a row was begun.
  bool empty() const { return count_ == 0; }

  void set(Scalar column, double value);
  double get(Scalar column) const;
  /// Sets a user column of the current row; false if there is no such column.
  bool set_user(std::string_view column, double value);
  void set_samples(const std::vector<std::string>& ids);
  /// The current row of a table, one number per layer, to be filled.
  std::span<double> row(LayerTable table);

  /// The current row of every table, in order of `tables`; valid until the next `begin_row`.
  const std::vector<std::span<const double>>& current();

  /// All rows, oldest first.
  std::vector<SeriesTable> tables() const;
  /// Names and columns only.
  std::vector<SeriesTable> columns() const;
  /// Sample ids per row, oldest first.
  std::vector<std::vector<std::string>> samples() const;

 private:
  struct Ring {
    std::string name;
    std::vector<std::string> columns;
    std::vector<double> values;  ///< rows_ × columns
  };

  std::span<double> at(Ring& ring, std::size_t row) {
    return {ring.values.data() + row * ring.columns.size(), ring.columns.size()};
  }

  std::size_t rows_, count_ = 0, head_ = 0;  ///< head_: the current row
  std::vector<Ring> rings_;                  ///< scalars, then the layer tables
  std::vector<std::vector<std::string>> samples_;
  std::vector<std::span<const double>> current_;
};

}  // namespace nanquest
