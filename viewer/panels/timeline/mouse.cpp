// The mouse over the timeline.
#include <cmath>
#include <string>

#include "viewer/model/numbers.h"
#include "viewer/panels/timeline/drawn.h"

namespace nanquest::viewer {
namespace {

/// Everything that is known of a step.
void tell_step(const DrawnTimeline& drawn, double step) {
  std::string text = "step " + exact_number(step);
  for (const TimelineCurve& curve : drawn.curves) {
    const std::string here = values_at(*curve.history, *curve.values, step, curve.given_from);
    std::string there;
    for (const RunCurve& other : curve.beside)
      if (const std::string at = values_at(*other.history, *other.values, step, other.given_from);
          !at.empty())
        there += (here.empty() && there.empty() ? " " : "; ") + letter_of_run(other.run) + " " + at;
    if (here.empty() && there.empty()) continue;
    text.append("\n").append(curve.title).append(here.empty() ? "" : " ").append(here).append(there);
    if (curve.history != &drawn.history && drawn.state.session.selection().place.empty())
      text += ": " + drawn.state.session.headroom().nearest(curve.history->row_of(step));
  }
  for (const TimelineEvent& event : drawn.events)
    if (event.step == step && text.size() < 900) text += "\n" + event.what;
  ImGui::SetTooltip("%s", text.c_str());
}

/// The event of the lanes that is nearest to the mouse, within reach; null if there is none.
const TimelineEvent* near_mouse(const std::vector<TimelineEvent>& events) {
  const ImVec2 mouse = ImGui::GetMousePos();
  const auto lane = static_cast<int>(std::floor(ImPlot::GetPlotMousePos().y));
  const TimelineEvent* best = nullptr;
  float reach = ImGui::GetFontSize() * 0.6f;
  for (const TimelineEvent& event : events) {
    if (static_cast<int>(event.lane) != lane) continue;
    const float distance = std::abs(ImPlot::PlotToPixels(event.step, 1).x - mouse.x);
    if (distance > reach) continue;
    reach = distance;
    best = &event;
  }
  return best;
}

}  // namespace

/// What a click selects: the event under the mouse, otherwise the nearest row.
void react_to_mouse(DrawnTimeline& drawn, bool lanes) {
  UiState& state = drawn.state;
  if (state.options.still || !ImPlot::IsPlotHovered()) return;
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return state.steps.show_all();
  const TimelineEvent* event = lanes ? near_mouse(drawn.events) : nullptr;
  if ((event == nullptr && drawn.history.empty()) || ImGui::IsMouseDown(ImGuiMouseButton_Left)) return;
  const double step =
      event != nullptr ? event->step
                       : drawn.history.steps()[drawn.history.row_of(std::round(ImPlot::GetPlotMousePos().x))];
  tell_step(drawn, step);
  if (!ImGui::IsMouseReleased(ImGuiMouseButton_Left)) return;
  if (ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Left] > 16)
    return;  // it was a drag, which panned
  if (event != nullptr && event->incident >= 0) return state.select_incident(event->incident);
  if (event != nullptr && !event->place.empty()) state.go(Link::to_place(event->place));
  state.select_step(step);
}

}  // namespace nanquest::viewer
