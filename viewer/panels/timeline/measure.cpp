#include "viewer/panels/timeline/measure.h"

#include <algorithm>
#include <cmath>

#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

constexpr float kDrag = 4;  // pixels: less is a click

bool dragged() {
  return ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] > kDrag * kDrag;
}

/// Vertical pixel of a row, at the plot's bottom if it has no value.
ImVec2 place_of(const TimelineCurve& curve, double step) {
  const History& history = *curve.history;
  const std::size_t row = history.row_of(step);
  const double value = (*curve.values)[row];
  return ImPlot::PlotToPixels(history.steps()[row], std::isfinite(value) ? value : curve.low);
}

}  // namespace

DragMeasures::DragMeasures() : before_(ImPlot::GetInputMap().PanMod) {
  ImPlot::GetInputMap().PanMod = ImGuiMod_Shift;
}

DragMeasures::~DragMeasures() {
  ImPlot::GetInputMap().PanMod = before_;
}

void react_to_drag(std::optional<Measure>& measure, const TimelineCurve& curve) {
  if (curve.history->empty() || ImGui::GetIO().KeyShift) return;
  const double here = ImPlot::GetPlotMousePos().x;
  if (ImPlot::IsPlotHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    measure = {curve.name, here, here};
  if (!measure || measure->curve != curve.name) return;
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) measure->to = here;
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Left) && !dragged()) measure.reset();
}

void draw_measure(const std::optional<Measure>& measure, const TimelineCurve& curve) {
  if (!measure || measure->curve != curve.name || curve.history->empty() || measure->from == measure->to)
    return;
  const ImVec2 origin = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const ImVec2 a = place_of(curve, measure->from), b = place_of(curve, measure->to);
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const ImU32 ink = ImGui::GetColorU32(colour().text);
  ImVec4 veil = colour().text;
  veil.w = 0.10f;
  list.AddRectFilled({std::min(a.x, b.x), origin.y}, {std::max(a.x, b.x), origin.y + size.y},
                     ImGui::GetColorU32(veil));
  for (const ImVec2 end : {a, b}) list.AddLine({end.x, origin.y}, {end.x, origin.y + size.y}, ink);
  list.AddLine(a, b, ink, 1.5f);
  const std::string text = measure_text(curve, *measure);
  const ImVec2 room = ImGui::CalcTextSize(text.c_str());
  const float left = std::clamp((a.x + b.x - room.x) / 2, origin.x + 4,
                                std::max(origin.x + 4, origin.x + size.x - room.x - 4));
  const float top = origin.y + size.y - room.y - 5;
  ImVec4 ground = colour().ground;
  ground.w = 0.9f;
  list.AddRectFilled({left - 4, top - 2}, {left + room.x + 4, top + room.y + 2}, ImGui::GetColorU32(ground),
                     3);
  list.AddText({left, top}, ink, text.c_str());
}

}  // namespace nanquest::viewer
