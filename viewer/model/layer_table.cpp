#include "viewer/model/layer_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/model/words.h"

namespace nanquest::viewer {
namespace {

/// Rank of a value for sorting: numbers, with -Inf below and +Inf above them, then NaN.
std::pair<int, double> rank_of(double value) {
  return std::isnan(value) ? std::pair(1, 0.0) : std::pair(0, value);
}

/// Every layer once, in the order of the file, with its index in each statistic.
struct Places {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::optional<std::size_t>>> of;
};

Places places_of(const History& history) {
  Places places;
  for (int i = 0; i < kStatistics; ++i) {
    const std::vector<std::string>& layers = history.layers(static_cast<Statistic>(i));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const auto [found, fresh] =
          places.of.try_emplace(layers[l], std::vector<std::optional<std::size_t>>(kStatistics));
      if (fresh) places.names.push_back(layers[l]);
      found->second[static_cast<std::size_t>(i)] = l;
    }
  }
  return places;
}

std::vector<std::optional<double>> whole_of(const Pyramid* series, std::size_t first, std::size_t last) {
  if (series == nullptr) return {std::nullopt, std::nullopt, std::nullopt, std::nullopt};
  const Extremes e = series->query(first, last);
  const auto finite = [&](double value) { return e.has_finite() ? std::optional(value) : std::nullopt; };
  return {finite(e.min), finite(e.max), static_cast<double>(e.nan),
          static_cast<double>(e.pos_inf + e.neg_inf)};
}

/// The largest magnitude covers finite values only: a 0 beside a norm that is not finite may mean that there
/// are none.
void blank_unknown(const History& history, LayerTable::Row& row) {
  std::optional<double>* by[kStatistics] = {};
  std::size_t column = 0;
  for (int i = 0; i < kStatistics; ++i)
    if (history.has(static_cast<Statistic>(i))) by[i] = &row.values[column++];
  for (const auto& [norm, amax] : {std::pair{Statistic::gradient, Statistic::gradient_amax},
                                   std::pair{Statistic::weight, Statistic::weight_amax}}) {
    const std::optional<double>* of_norm = by[static_cast<int>(norm)];
    std::optional<double>* of_amax = by[static_cast<int>(amax)];
    if (of_norm && of_amax && *of_norm && !std::isfinite(**of_norm) && *of_amax == 0.0) of_amax->reset();
  }
}

}  // namespace

void LayerTable::sort(int by, bool largest_first) {
  const auto before = [&](const Row& a, const Row& b) {
    if (by < 0) return largest_first ? b.layer < a.layer : a.layer < b.layer;
    const std::optional<double>&x = a.values[static_cast<std::size_t>(by)],
          &y = b.values[static_cast<std::size_t>(by)];
    if (!x || !y) return x.has_value() && !y.has_value();
    return largest_first ? rank_of(*y) < rank_of(*x) : rank_of(*x) < rank_of(*y);
  };
  std::stable_sort(rows.begin(), rows.end(), before);
}

std::size_t layer_row(const History& history, double step) {
  return step >= 0 || history.empty() ? history.row_of(step) : history.rows() - 1;
}

LayerTable layer_table(const History& history, Statistic chosen, std::size_t row, std::size_t first,
                       std::size_t last, const std::string& words) {
  LayerTable table;
  if (row >= history.rows()) return table;
  table.step = history.steps()[row];
  for (int i = 0; i < kStatistics; ++i)
    if (const auto s = static_cast<Statistic>(i); history.has(s))
      table.columns.emplace_back(statistic_title(s));
  for (const char* title : {"Smallest", "Largest", "NaN", "Inf"}) table.columns.emplace_back(title);
  const Words wanted(words);
  const Places places = places_of(history);
  for (const std::string& name : places.names) {
    if (!wanted.in(name)) continue;
    const std::vector<std::optional<std::size_t>>& at = places.of.at(name);
    LayerTable::Row out{name, {}};
    const Pyramid* shown = nullptr;
    for (int i = 0; i < kStatistics; ++i) {
      const auto s = static_cast<Statistic>(i);
      if (!history.has(s)) continue;
      const std::optional<std::size_t> layer = at[static_cast<std::size_t>(i)];
      const Pyramid* series = layer ? &history.series(s, *layer) : nullptr;
      out.values.push_back(series != nullptr ? std::optional((*series)[row]) : std::nullopt);
      if (s == chosen) shown = series;
    }
    blank_unknown(history, out);
    for (const std::optional<double>& value : whole_of(shown, first, last)) out.values.push_back(value);
    table.rows.push_back(std::move(out));
  }
  return table;
}

PageTable page_table(const LayerTable& table) {
  PageTable out;
  out.columns = {{"at step " + exact_number(table.step)}};
  for (const std::string& title : table.columns) out.columns.push_back({title, true});
  for (const LayerTable::Row& row : table.rows) {
    std::vector<std::string> cells = {row.layer};
    for (const std::optional<double>& value : row.values) cells.push_back(value ? short_number(*value) : "-");
    out.rows.push_back({cells});
  }
  return out;
}

}  // namespace nanquest::viewer
