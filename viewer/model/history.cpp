#include "viewer/model/history.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

namespace nanquest::viewer {
namespace {

/// Column `c` of a row-major table, in the order of `rows`; NaN for rows that
/// it has not.
std::vector<double> column_of(const SeriesTable& table, std::size_t c, const std::vector<std::size_t>& rows) {
  std::vector<double> out(rows.size(), std::nan(""));
  const std::size_t width = table.columns.size(), held = table.rows();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] < held) out[i] = table.values[rows[i] * width + c];
  return out;
}

/// Columns that are cut out of a table together: a row of a wide table is then read once for all of them.
constexpr std::size_t kTogether = 16;

/// The same of columns [from, from + count).
std::vector<std::vector<double>> columns_of(const SeriesTable& table, std::size_t from, std::size_t count,
                                            const std::vector<std::size_t>& rows) {
  std::vector<std::vector<double>> out(count, std::vector<double>(rows.size()));
  const std::size_t width = table.columns.size(), held = table.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double* row = rows[i] < held ? &table.values[rows[i] * width + from] : nullptr;
    for (std::size_t c = 0; c < count; ++c) out[c][i] = row != nullptr ? row[c] : std::nan("");
  }
  return out;
}

/// The step of each row: its index if the tables don't have it.
std::vector<double> steps_of(const SeriesTable* scalars, std::size_t rows) {
  std::vector<double> steps(rows);
  std::iota(steps.begin(), steps.end(), 0.0);
  if (scalars == nullptr) return steps;
  const std::size_t width = scalars->columns.size();
  for (std::size_t c = 0; c < width; ++c)
    for (std::size_t r = 0; scalars->columns[c] == "step" && r < std::min(rows, scalars->rows()); ++r)
      if (const double step = scalars->values[r * width + c]; std::isfinite(step)) steps[r] = step;
  return steps;
}

/// Median distance of consecutive steps; 1 if there are fewer than two.
double spacing_of(const std::vector<double>& steps) {
  std::vector<double> distances;
  for (std::size_t r = 1; r < steps.size(); ++r)
    if (steps[r] > steps[r - 1]) distances.push_back(steps[r] - steps[r - 1]);
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

const SeriesTable* find(const std::vector<SeriesTable>& tables, const std::string& name) {
  for (const SeriesTable& table : tables)
    if (table.name == name) return &table;
  return nullptr;
}

/// "weight norm": the title inside a sentence.
std::string lower_title(Statistic s) {
  std::string title = statistic_title(s);
  title[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(title[0])));
  return title;
}

/// The column boundaries of a map. Columns as large as a block of the pyramids or larger end at block
/// boundaries: then the pyramids know their extremes, and the values are not read.
std::vector<std::size_t> edges_of(std::size_t first, std::size_t last, std::size_t columns) {
  constexpr std::size_t block = Pyramid::kBlock;
  const bool wide = last - first >= columns * block;
  std::vector<std::size_t> edges = {first};
  edges.reserve(columns + 1);
  for (std::size_t c = 1; c < columns; ++c) {
    const std::size_t edge = first + (last - first) * c / columns;
    edges.push_back(wide ? (edge + block / 2) / block * block : edge);
  }
  edges.push_back(last);
  return edges;
}

/// A plain "amax" is what other programs may write instead of "grad_amax".
const SeriesTable* find(const std::vector<SeriesTable>& tables, Statistic s) {
  const SeriesTable* table = find(tables, statistic_table(s));
  return table == nullptr && s == Statistic::gradient_amax ? find(tables, "amax") : table;
}

}  // namespace

const char* gate_words(Gate gate) {
  constexpr const char* words[] = {"ok", "loss scale overflow", "non-finite", "spike"};
  return words[static_cast<int>(gate) & 3];
}

Gate worse(Gate a, Gate b) {
  for (const Gate gate : {Gate::non_finite, Gate::spike, Gate::scale_overflow})
    if (a == gate || b == gate) return gate;
  return Gate::ok;
}

History::History(const std::vector<SeriesTable>& tables, Progress* progress, std::uint64_t work) {
  std::size_t rows = 0, columns = 0, looked_at = 0;
  for (const SeriesTable& table : tables) {
    rows = std::max(rows, table.rows());
    columns += table.columns.size();
  }
  columns = std::max<std::size_t>(columns, 1);
  const auto advance_to = [&](std::size_t column) {
    if (progress != nullptr) progress->advance(work * column / columns - work * looked_at / columns);
    looked_at = column;
    return progress == nullptr || !progress->stopped();
  };
  const SeriesTable* scalars = find(tables, "scalars");
  steps_ = steps_of(scalars, rows);
  // A run that went back to an earlier step writes that step again.
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return steps_[a] < steps_[b]; });
  std::sort(steps_.begin(), steps_.end());
  spacing_ = spacing_of(steps_);
  for (std::size_t c = 0; scalars != nullptr && c < scalars->columns.size(); ++c) {
    if (scalars->columns[c] == "step") continue;
    scalar_names_.push_back(scalars->columns[c]);
    scalars_.emplace_back(column_of(*scalars, c, order));
    if (!advance_to(looked_at + 1)) return;
  }
  if (const Pyramid* gates = scalar("gate")) add_events(*gates, 0);
  for (int i = 0; i < kStatistics; ++i) {
    const SeriesTable* table = find(tables, static_cast<Statistic>(i));
    if (table == nullptr || table->rows() == 0) continue;
    for (std::size_t from = 0; from < table->columns.size(); from += kTogether) {
      const std::size_t count = std::min(kTogether, table->columns.size() - from);
      std::vector<std::vector<double>> cut = columns_of(*table, from, count, order);
      for (std::size_t c = 0; c < count; ++c) {
        note_smallest(i, cut[c]);
        layers_[i].push_back(table->columns[from + c]);
        series_[i].emplace_back(std::move(cut[c]));
        if (!advance_to(looked_at + 1)) return;
      }
    }
  }
  (void)advance_to(columns);
}

void History::note_smallest(int statistic, std::span<const double> values) {
  double& smallest = smallest_positive_[statistic];
  for (const double v : values)
    if (v > 0 && std::isfinite(v) && (smallest == 0 || v < smallest)) smallest = v;
}

bool History::append(const std::vector<SeriesTable>& more) {
  const SeriesTable* scalars = find(more, "scalars");
  const std::size_t before = rows(), rows = more.empty() ? 0 : more.front().rows();
  if (scalars == nullptr || scalars->columns.empty() || scalars->columns.front() != "step" || before == 0)
    return false;
  const auto others = [&](const SeriesTable* table, const std::vector<std::string>& names, std::size_t from) {
    return table == nullptr ? !names.empty()
                            : table->rows() != rows ||
                                  !std::equal(table->columns.begin() + static_cast<std::ptrdiff_t>(from),
                                              table->columns.end(), names.begin(), names.end());
  };
  if (others(scalars, scalar_names_, 1)) return false;
  for (int i = 0; i < kStatistics; ++i)
    if (others(find(more, static_cast<Statistic>(i)), layers_[i], 0)) return false;
  std::vector<double> steps;
  double last = steps_.back();
  for (std::size_t r = 0; r < rows; ++r) {
    const double step = scalars->values[r * scalars->columns.size()];
    if (!(step >= last)) return false;
    steps.push_back(last = step);
  }
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  steps_.insert(steps_.end(), steps.begin(), steps.end());
  spacing_ = spacing_of(steps_);
  for (std::size_t c = 0; c < scalars_.size(); ++c) scalars_[c].append(column_of(*scalars, c + 1, order));
  if (const Pyramid* gates = scalar("gate")) add_events(*gates, before);
  for (int i = 0; i < kStatistics; ++i)
    for (std::size_t c = 0; c < series_[i].size(); ++c) {
      const std::vector<double> values = column_of(*find(more, static_cast<Statistic>(i)), c, order);
      note_smallest(i, values);
      series_[i][c].append(values);
    }
  return true;
}

void History::add_events(const Pyramid& gates, std::size_t from) {
  for (std::size_t r = from; r < gates.size(); ++r)
    if (const double g = gates[r]; g >= 1 && g <= 3) events_.push_back({r, steps_[r], static_cast<Gate>(g)});
}

std::size_t History::row_of(double step) const {
  if (steps_.empty()) return 0;
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), step);
  const bool before = after == steps_.end() || (after != steps_.begin() && step - after[-1] < *after - step);
  const auto end = before ? after : std::upper_bound(after, steps_.end(), *after);
  return static_cast<std::size_t>(end - steps_.begin()) - 1;
}

std::pair<std::size_t, std::size_t> History::rows_at(double step) const {
  const auto [first, last] = std::equal_range(steps_.begin(), steps_.end(), step);
  return {static_cast<std::size_t>(first - steps_.begin()), static_cast<std::size_t>(last - steps_.begin())};
}

bool History::has(Statistic s, const std::string& layer) const {
  const std::vector<std::string>& names = layers(s);
  return std::find(names.begin(), names.end(), layer) != names.end();
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

double History::end_of(std::size_t last) const {
  if (last == 0) return steps_.empty() ? 0 : steps_.front();
  const double usual = steps_[last - 1] + spacing_;
  return last < steps_.size() ? std::min(steps_[last], usual) : usual;
}

std::optional<BadRow> History::first_bad() const {
  const Pyramid* gate = scalar("gate");
  const auto answer = [&](std::size_t r) { return gate == nullptr ? 0 : (*gate)[r]; };
  BadRow first{rows(), ""};
  for (std::size_t r = 0; r < first.row; ++r)
    if (answer(r) == static_cast<double>(Gate::non_finite)) first.row = r;
  // Gradients may overflow with the loss scale: that step was skipped.
  const auto look = [&](const Pyramid& values, bool of_gradients, const std::string& what) {
    if (values.query(0, first.row).non_finite() == 0) return;
    for (std::size_t r = 0; r < first.row; ++r) {
      const bool left_out = of_gradients && answer(r) == static_cast<double>(Gate::scale_overflow);
      if (!std::isfinite(values[r]) && !left_out) first = {r, what};
    }
  };
  if (const Pyramid* loss = scalar("loss")) look(*loss, true, "loss");
  if (const Pyramid* norm = scalar("grad_norm")) look(*norm, true, "gradient norm");
  for (const Statistic s :
       {Statistic::gradient, Statistic::gradient_amax, Statistic::weight, Statistic::weight_amax})
    for (std::size_t i = 0; i < layers(s).size(); ++i)
      look(series(s, i), s == Statistic::gradient || s == Statistic::gradient_amax,
           lower_title(s) + " of " + layers(s)[i]);
  return first.row < rows() ? std::optional(first) : std::nullopt;
}

HeatMap History::heat_map(Statistic s, std::size_t first, std::size_t last, std::size_t columns) const {
  HeatMap map;
  last = std::min(last, rows());
  const std::vector<Pyramid>& layers = series_[static_cast<int>(s)];
  if (first >= last || columns == 0 || layers.empty()) return map;
  map.layers = layers.size();
  map.columns = std::min(columns, last - first);
  map.edges = edges_of(first, last, map.columns);
  map.cells.reserve(map.layers * map.columns);
  map.all.resize(map.columns);
  for (const Pyramid& layer : layers)
    for (std::size_t c = 0; c < map.columns; ++c) {
      map.cells.push_back({layer.query(map.edges[c], map.edges[c + 1])});
      map.all[c].add(map.cells.back().extremes);
    }
  return map;
}

const Pyramid* History::scalar(const std::string& name) const {
  for (std::size_t i = 0; i < scalar_names_.size(); ++i)
    if (scalar_names_[i] == name) return &scalars_[i];
  return nullptr;
}

}  // namespace nanquest::viewer
