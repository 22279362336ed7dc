/// Places in the plots of a panel, for a mouse that is to be there.
#pragma once

#include "imgui.h"
#include "imgui_internal.h"
#include "implot.h"
#include "implot_internal.h"
#include "tests/viewer/driver.h"

namespace nanquest::viewer::testing {

/// A plot of a panel, by its label; null if it was not drawn.
inline const ImPlotPlot* plot_of(const char* panel, const char* label) {
  ImPool<ImPlotPlot>& plots = ImPlot::GetCurrentContext()->Plots;
  const ImGuiWindow* window = ImGui::FindWindowByName(panel);
  return window == nullptr ? nullptr : plots.GetByKey(ImHashStr(label, 0, window->ID));
}

/// Pixels of a place in it; -1, -1 if it was not drawn.
inline ImVec2 place_in(const char* panel, const char* label, double x, double y) {
  const ImPlotPlot* plot = plot_of(panel, label);
  if (plot == nullptr) return {-1, -1};
  return {plot->Axes[ImAxis_X1].PlotToPixels(x), plot->Axes[ImAxis_Y1].PlotToPixels(y)};
}

/// Presses a button at `from`, moves to `to` and releases it there.
inline void drag(Driver& driver, ImVec2 from, ImVec2 to, ImGuiMouseButton button = ImGuiMouseButton_Left) {
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(from.x, from.y);
  driver.frame(2);
  io.AddMouseButtonEvent(button, true);
  driver.frame();
  io.AddMousePosEvent((from.x + to.x) / 2, (from.y + to.y) / 2);
  driver.frame();
  io.AddMousePosEvent(to.x, to.y);
  driver.frame();
  io.AddMouseButtonEvent(button, false);
  driver.frame(2);
}

}  // namespace nanquest::viewer::testing
