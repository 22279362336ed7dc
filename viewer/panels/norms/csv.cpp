#include <algorithm>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "viewer/model/numbers.h"
#include "viewer/model/run_curve.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {
namespace {

/// The chosen layer in the runs beside and, where curves are smoothed, smoothed: columns and their names.
std::vector<std::pair<std::string, RunCurve>> other_columns(const Session& session, Statistic s) {
  std::vector<std::pair<std::string, RunCurve>> out;
  const std::string layer = std::string(statistic_table(s)) + ":" + session.selection().layer;
  const std::string smooth = " smoothed by " + exact_number(session.selection().smoothing);
  const auto& layers = session.history().layers(s);
  const auto chosen = std::ranges::find(layers, session.selection().layer);
  if (chosen != layers.end() && session.selection().smoothing > 0) {
    RunCurve own = layer_curve(session, s, static_cast<std::size_t>(chosen - layers.begin()));
    out.emplace_back(layer + smooth, own);
  }
  for (RunCurve& other : layer_beside(session, s)) {
    const std::string name = layer + " of " + session.comparison()->runs[other.run];
    const std::shared_ptr<const Pyramid> shown = std::exchange(other.smooth, nullptr);
    out.emplace_back(name, other);
    if (shown == nullptr) continue;
    other.smooth = shown;
    out.emplace_back(name + smooth, other);
  }
  return out;
}

}  // namespace

/// One row per step: scalars, then the selected statistic of every layer, then the selected layer in the runs
/// beside this one, and smoothed. Steps that only those hold follow.
Result<std::string> norms_csv(Session& session) {
  const History& history = session.history();
  const Statistic s = session.selection().statistic;
  const auto others = other_columns(session, s);
  std::ostringstream out;
  out << "step";
  for (const std::string& name : history.scalar_names()) out << ',' << csv_field(name);
  for (const std::string& layer : history.layers(s))
    out << ',' << csv_field(std::string(statistic_table(s)) + ":" + layer);
  for (const auto& [name, curve] : others) out << ',' << csv_field(name);
  out << '\n';
  const auto of_others = [&](double step, std::size_t turn) {
    for (const auto& [name, curve] : others) {
      const auto [first, end] = curve.history->rows_at(step);
      out << ',' << (first + turn < end ? exact_number(curve.shown()[first + turn]) : "");
    }
    out << '\n';
  };
  for (std::size_t r = 0; r < history.rows(); ++r) {
    out << exact_number(history.steps()[r]);
    for (const Pyramid& scalar : history.scalars()) out << ',' << exact_number(scalar[r]);
    for (std::size_t i = 0; i < history.layers(s).size(); ++i)
      out << ',' << exact_number(history.series(s, i)[r]);
    of_others(history.steps()[r], others.empty() ? 0 : r - history.rows_at(history.steps()[r]).first);
  }
  std::set<double> more;
  for (const auto& [name, curve] : others)
    more.insert(curve.history->steps().begin(), curve.history->steps().end());
  for (const double step : more) {
    if (const auto [first, end] = history.rows_at(step); first < end) continue;
    out << exact_number(step) << std::string(history.scalar_names().size() + history.layers(s).size(), ',');
    of_others(step, 0);
  }
  return out.str();
}

}  // namespace nanquest::viewer
