/// History: the per-step numbers of a run, ready to be drawn: one pyramid per layer and statistic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "probe/snapshot/model.h"
#include "viewer/model/progress.h"
#include "viewer/model/pyramid.h"
#include "viewer/model/statistic.h"

namespace nanquest::viewer {

/// A stretch of rows whose gate was not `ok`.
struct GateEvent {
  std::size_t row = 0;
  double step = 0;
  Gate gate = Gate::ok;
};

/// One cell of the heat map: a layer over a stretch of rows.
struct HeatCell {
  Extremes extremes;
};

/// Layers × columns, row-major by layer; column c covers rows [edges[c], edges[c+1]).
struct HeatMap {
  std::size_t layers = 0, columns = 0;
  std::vector<HeatCell> cells;
  std::vector<std::size_t> edges;
  std::vector<Extremes> all;  ///< of each column, over all layers
  const HeatCell& at(std::size_t layer, std::size_t column) const { return cells[layer * columns + column]; }
};

/// A row that was not finite, and what of it.
struct BadRow {
  std::size_t row = 0;
  std::string what;  ///< "loss", "weight norm of head"; "" if the gate says so
};

class History {
 public:
  History() = default;
  /// Takes the tables of a series file or of a snapshot. Without a "step" column rows are numbered from 0.
  /// Rows are sorted by step; those of one step stay in the order in which they were written. `progress`:
  /// advances column by column by `work` in all; if told to stop, columns are missing.
  explicit History(const std::vector<SeriesTable>& tables, Progress* progress = nullptr,
                   std::uint64_t work = 0);

  /// Appends rows of tables like those that it was made of, instead of making it anew: costs what is
  /// appended, and a copy of the steps. Earlier copies do not change. False, and nothing changes, if the rows
  /// are of earlier steps than the last or the tables are others.
  bool append(const std::vector<SeriesTable>& more);

  std::size_t rows() const { return steps_.size(); }
  bool empty() const { return steps_.empty(); }
  const std::vector<double>& steps() const { return steps_; }
  /// Step at which the stretch of rows up to `last` (exclusive) ends: that of the next row, or the usual
  /// distance after the last one. Steps between two stretches were not recorded.
  double end_of(std::size_t last) const;
  /// Row whose step is nearest, the last one of that step; 0 if there are none.
  std::size_t row_of(double step) const;
  /// Rows [first, last) of exactly that step: several if it was repeated, none if it isn't recorded.
  std::pair<std::size_t, std::size_t> rows_at(double step) const;

  bool has(Statistic s) const { return !series_[static_cast<int>(s)].empty(); }
  /// True if there is a series of that layer.
  bool has(Statistic s, const std::string& layer) const;
  /// The first statistic there is; gradient if there is none.
  Statistic first_available() const;
  const std::vector<std::string>& layers(Statistic s) const { return layers_[static_cast<int>(s)]; }
  const Pyramid& series(Statistic s, std::size_t layer) const { return series_[static_cast<int>(s)][layer]; }
  /// Extremes over all layers and rows [first, last).
  Extremes extremes(Statistic s, std::size_t first, std::size_t last) const;
  /// Smallest value > 0 of the statistic; 0 if there is none. The bottom of a log scale.
  double smallest_positive(Statistic s) const { return smallest_positive_[static_cast<int>(s)]; }

  /// Reduces rows [first, last) to at most `columns` columns.
  HeatMap heat_map(Statistic s, std::size_t first, std::size_t last, std::size_t columns) const;

  /// Scalars ("loss", "lr", "scale", …) other than "step".
  const std::vector<std::string>& scalar_names() const { return scalar_names_; }
  const std::vector<Pyramid>& scalars() const { return scalars_; }
  /// The scalar of that name, or null.
  const Pyramid* scalar(const std::string& name) const;
  const std::vector<GateEvent>& events() const { return events_; }
  /// True if the rows show whether their step was finite: by the gate, the loss or a gradient norm.
  bool looks_for_bad() const;
  /// The first row whose step was not finite, by gate, loss, gradients or weights; gradients of a step whose
  /// loss scale overflowed do not count. Nothing if there is none.
  std::optional<BadRow> first_bad() const;

 private:
  std::vector<double> steps_;
  double spacing_ = 1;  ///< of the steps: their median distance
  std::vector<std::string> layers_[kStatistics];
  std::vector<Pyramid> series_[kStatistics];
  void add_events(const Pyramid& gates, std::size_t from);
  void note_smallest(int statistic, std::span<const double> values);

  double smallest_positive_[kStatistics] = {};
  std::vector<std::string> scalar_names_;
  std::vector<Pyramid> scalars_;
  std::vector<GateEvent> events_;
};

/// The one that is shown where both are: a step that was not finite before a spike, before a loss scale
/// overflow.
Gate worse(Gate a, Gate b);

/// "ok", "loss scale overflow", "non-finite", "spike".
const char* gate_words(Gate gate);

}  // namespace nanquest::viewer
