#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/model/layer_table.h"
#include "viewer/model/numbers.h"
#include "viewer/model/run_curve.h"
#include "viewer/model/smoothing.h"
#include "viewer/panels/registry.h"
#include "viewer/panels/series_lines.h"

namespace nanquest::viewer {
namespace {

PageTable table_of(const History& history, Statistic s) {
  std::vector<SeriesLine> lines;
  for (std::size_t i = 0; i < history.layers(s).size(); ++i) {
    const std::string& layer = history.layers(s)[i];
    lines.push_back({layer, &history.series(s, i), Link::to_layer(layer, s)});
  }
  return series_table(history, "layer", lines);
}

/// The chosen layer in this run and in those beside it, and what was smoothed; no rows if there is neither.
PageTable in_runs(const Session& session, Statistic s) {
  PageTable table;
  const auto add = [&](const RunCurve& curve, const std::string& name) {
    std::vector<SeriesLine> lines;
    if (curve.run > 0) lines.push_back({name, curve.values});
    if (curve.smooth) lines.push_back({name + ", smoothed", curve.smooth.get()});
    PageTable more = series_table(*curve.history, session.selection().layer + " in the runs", lines);
    table.columns = more.columns;
    table.rows.insert(table.rows.end(), more.rows.begin(), more.rows.end());
  };
  const auto& layers = session.history().layers(s);
  const auto chosen = std::ranges::find(layers, session.selection().layer);
  const bool alone = session.others().empty();
  if (chosen != layers.end())
    add(layer_curve(session, s, static_cast<std::size_t>(chosen - layers.begin())),
        alone ? "this run" : session.comparison()->runs[0]);
  for (const RunCurve& other : layer_beside(session, s)) add(other, session.comparison()->runs[other.run]);
  return table;
}

PageTable at_step(const Session& session, Statistic chosen) {
  const History& history = session.history();
  return page_table(
      layer_table(history, chosen, layer_row(history, session.selection().step), 0, history.rows()));
}

/// If programs clip before the optimizer gets gradients, the norms of layers are of the clipped ones, and
/// smaller than the norm of all gradients, which was taken before. Looks at some hundred rows.
std::string clipping_text(const History& history) {
  constexpr std::size_t kLooked = 256;
  const Pyramid* whole = history.scalar("grad_norm");
  const std::size_t layers = history.layers(Statistic::gradient).size();
  if (whole == nullptr || layers == 0) return "";
  std::size_t clipped = 0, looked = 0;
  for (std::size_t row = 0; row < history.rows(); row += 1 + history.rows() / kLooked) {
    double squares = 0;
    for (std::size_t i = 0; i < layers; ++i) {
      const double norm = history.series(Statistic::gradient, i)[row];
      squares += norm * norm;
    }
    if (!std::isfinite(squares) || squares == 0 || !((*whole)[row] > 0)) continue;
    ++looked;
    if (std::sqrt(squares) < 0.99 * (*whole)[row]) ++clipped;
  }
  return clipped == 0
             ? ""
             : "norms of layers are of clipped gradients, grad_norm is of those before: they differ in " +
                   percent_text(clipped, looked) + " of the steps that were compared";
}

}  // namespace

/// The chosen statistic; a file holds all of them.
PanelPage page_of_norms(Session& session, Extent extent) {
  PanelPage page;
  const History& history = session.history();
  const Statistic chosen = session.selection().statistic;
  if (!history.has(chosen)) {
    page.headline = std::string("No history of ") + statistic_title(chosen) +
                    (session.series_error().empty() ? "" : ": " + session.series_error());
    return page;
  }
  page.headline = std::string(statistic_title(chosen)) + ", steps " + exact_number(history.steps().front()) +
                  " to " + exact_number(history.steps().back());
  if (const std::string clipping = clipping_text(history);
      !clipping.empty() && (chosen == Statistic::gradient || extent == Extent::whole))
    page.facts.push_back({"", clipping});
  if (const double weight = session.selection().smoothing; weight > 0)
    page.facts.push_back({"Smoothing", smoothing_text(weight)});
  PageTable runs = in_runs(session, chosen);
  if (extent == Extent::glance) {
    for (const GateEvent& e : history.events())
      page.facts.push_back({"", "step " + exact_number(e.step) + ": " + gate_words(e.gate)});
    page.tables = {table_of(history, chosen), at_step(session, chosen)};
    if (!runs.rows.empty()) page.tables.insert(page.tables.begin(), std::move(runs));
    return page;
  }
  if (!runs.rows.empty()) page.tables.push_back(std::move(runs));
  page.tables.push_back(at_step(session, chosen));
  page.tables.back().title = "All layers at one step";
  for (int i = 0; i < kStatistics; ++i) {
    const auto s = static_cast<Statistic>(i);
    if (!history.has(s)) continue;
    page.tables.push_back(table_of(history, s));
    page.tables.back().title = statistic_title(s);
  }
  return page;
}

}  // namespace nanquest::viewer
