#include "viewer/model/history.h"

#include <algorithm>
#include <cmath>

namespace nanquest::viewer {
namespace {

/// Column `c` of a row-major table, cut or filled with NaN to `rows`.
std::vector<double> column_of(const SeriesTable& table, std::size_t c, std::size_t rows) {
  std::vector<double> out(rows, std::nan(""));
  const std::size_t width = table.columns.size();
  for (std::size_t r = 0; r < std::min(rows, table.rows()); ++r) out[r] = table.values[r * width + c];
  return out;
}

const SeriesTable* find(const std::vector<SeriesTable>& tables, const std::string& name) {
  for (const SeriesTable& table : tables)
    if (table.name == name) return &table;
  return nullptr;
}

/// A plain "amax" is what other programs may write instead of "grad_amax".
const SeriesTable* find(const std::vector<SeriesTable>& tables, Statistic s) {
  const SeriesTable* table = find(tables, statistic_table(s));
  return table == nullptr && s == Statistic::gradient_amax ? find(tables, "amax") : table;
}

}  // namespace

const char* statistic_title(Statistic s) {
  constexpr const char* titles[kStatistics] = {"Gradient norm", "Weight norm", "Update ratio",
                                               "Gradient amax", "Weight amax"};
  return titles[static_cast<int>(s)];
}

const char* statistic_table(Statistic s) {
  constexpr const char* names[kStatistics] = {"grad_norm", "weight_norm", "update_ratio", "grad_amax",
                                              "weight_amax"};
  return names[static_cast<int>(s)];
}

const char* gate_words(Gate gate) {
  constexpr const char* words[] = {"ok", "loss scale overflow", "non-finite", "spike"};
  return words[static_cast<int>(gate) & 3];
}

History::History(const std::vector<SeriesTable>& tables) {
  std::size_t rows = 0;
  for (const SeriesTable& table : tables) rows = std::max(rows, table.rows());
  steps_.resize(rows);
  for (std::size_t r = 0; r < rows; ++r) steps_[r] = static_cast<double>(r);
  if (const SeriesTable* scalars = find(tables, "scalars")) {
    for (std::size_t c = 0; c < scalars->columns.size(); ++c) {
      std::vector<double> values = column_of(*scalars, c, rows);
      if (scalars->columns[c] == "step") {
        for (std::size_t r = 0; r < rows; ++r)
          if (std::isfinite(values[r])) steps_[r] = values[r];
        continue;
      }
      scalar_names_.push_back(scalars->columns[c]);
      scalars_.emplace_back(std::move(values));
    }
  }
  if (const Pyramid* gates = scalar("gate"))
    for (std::size_t r = 0; r < rows; ++r)
      if (const double g = (*gates)[r]; g >= 1 && g <= 3)
        events_.push_back({r, steps_[r], static_cast<Gate>(g)});
  for (int i = 0; i < kStatistics; ++i) {
    const SeriesTable* table = find(tables, static_cast<Statistic>(i));
    if (table == nullptr || table->rows() == 0) continue;
    for (std::size_t c = 0; c < table->columns.size(); ++c) {
      std::vector<double> values = column_of(*table, c, rows);
      for (const double v : values)
        if (v > 0 && std::isfinite(v) && (smallest_positive_[i] == 0 || v < smallest_positive_[i]))
          smallest_positive_[i] = v;
      layers_[i].push_back(table->columns[c]);
      series_[i].emplace_back(std::move(values));
    }
  }
}

std::size_t History::row_of(double step) const {
  std::size_t best = 0;
  for (std::size_t r = 1; r < steps_.size(); ++r)
    if (std::abs(steps_[r] - step) <= std::abs(steps_[best] - step)) best = r;
  return best;
}

Statistic History::first_available() const {
  for (int i = 0; i < kStatistics; ++i)
    if (!series_[i].empty()) return static_cast<Statistic>(i);
  return Statistic::gradient;
}

Extremes History::extremes(Statistic s, std::size_t first, std::size_t last) const {
  Extremes out;
  for (const Pyramid& layer : series_[static_cast<int>(s)]) out.add(layer.query(first, last));
  return out;
}

bool History::looks_for_bad() const {
  return scalar("gate") != nullptr || scalar("loss") != nullptr || scalar("grad_norm") != nullptr;
}

std::optional<std::size_t> History::first_bad() const {
  const Pyramid* gate = scalar("gate");
  for (std::size_t r = 0; r < rows(); ++r) {
    const double g = gate == nullptr ? 0 : (*gate)[r];
    if (g == static_cast<double>(Gate::non_finite)) return r;
    if (g == static_cast<double>(Gate::scale_overflow)) continue;
    for (const char* name : {"loss", "grad_norm"})
      if (const Pyramid* values = scalar(name); values != nullptr && !std::isfinite((*values)[r])) return r;
  }
  return std::nullopt;
}

HeatMap History::heat_map(Statistic s, std::size_t first, std::size_t last, std::size_t columns) const {
  HeatMap map;
  last = std::min(last, rows());
  const std::vector<Pyramid>& layers = series_[static_cast<int>(s)];
  if (first >= last || columns == 0 || layers.empty()) return map;
  map.layers = layers.size();
  map.columns = std::min(columns, last - first);
  for (std::size_t c = 0; c <= map.columns; ++c)
    map.edges.push_back(first + (last - first) * c / map.columns);
  map.cells.reserve(map.layers * map.columns);
  for (const Pyramid& layer : layers)
    for (std::size_t c = 0; c < map.columns; ++c)
      map.cells.push_back({layer.query(map.edges[c], map.edges[c + 1])});
  return map;
}

const Pyramid* History::scalar(const std::string& name) const {
  for (std::size_t i = 0; i < scalar_names_.size(); ++i)
    if (scalar_names_[i] == name) return &scalars_[i];
  return nullptr;
}

}  // namespace nanquest::viewer
