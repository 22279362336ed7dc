#include "viewer/model/run_curve.h"

#include <algorithm>
#include <string>

#include "viewer/model/smoothing.h"

namespace nanquest::viewer {

void smooth(RunCurve& curve, const Session& session) {
  if (const double weight = session.selection().smoothing; weight > 0)
    curve.smooth = std::make_shared<const Pyramid>(smoothed(*curve.values, weight));
}

RunCurve layer_curve(const Session& session, Statistic s, std::size_t layer) {
  RunCurve curve{0, &session.history().series(s, layer), 0, &session.history()};
  smooth(curve, session);
  return curve;
}

std::vector<RunCurve> layer_beside(const Session& session, Statistic s) {
  std::vector<RunCurve> out;
  const std::string& layer = session.selection().layer;
  for (std::size_t i = 0; i < session.others().size() && !layer.empty(); ++i) {
    const History& history = session.others()[i]->history();
    const std::vector<std::string>& layers = history.layers(s);
    const auto found = std::ranges::find(layers, layer);
    if (found == layers.end()) continue;
    out.push_back({i + 1, &history.series(s, static_cast<std::size_t>(found - layers.begin())), 0, &history});
    smooth(out.back(), session);
  }
  return out;
}

}  // namespace nanquest::viewer
