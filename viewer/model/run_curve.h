/// RunCurve: one series of one run, as it is drawn beside the same of others.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "viewer/model/session.h"

namespace nanquest::viewer {

/// A series of one run.
struct RunCurve {
  std::size_t run = 0;               ///< of Comparison::runs; 0: the open one
  const Pyramid* values = nullptr;   ///< of the history
  std::size_t given_from = 0;        ///< the first row for which the program gave a value (`given_from`)
  const History* history = nullptr;  ///< whose steps they are of
  std::shared_ptr<const Pyramid> smooth = {};  ///< the values smoothed, if that was asked for
  /// What is drawn.
  const Pyramid& shown() const { return smooth ? *smooth : *values; }
};

/// Smooths it as the selection of the session says.
void smooth(RunCurve& curve, const Session& session);

/// A series of layer `layer` of the open run, smoothed as the selection says.
RunCurve layer_curve(const Session& session, Statistic s, std::size_t layer);
/// The selected layer in the runs beside the open one, as many as have it; none if no layer is selected.
std::vector<RunCurve> layer_beside(const Session& session, Statistic s);

}  // namespace nanquest::viewer
