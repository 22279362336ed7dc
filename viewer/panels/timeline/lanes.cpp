// The lanes of events above the curves.
#include <algorithm>
#include <cmath>

#include "viewer/panels/timeline/drawn.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

using Lane = TimelineEvent::Lane;

/// Events of one lane whose marks would cover each other are a bar whose height says how many they are.
void draw_crowds(const DrawnTimeline& drawn, Lane lane) {
  const float em = ImGui::GetFontSize(), wide = em * 0.3f;
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const std::vector<Crowd> crowds = crowds_of(
      drawn.events, lane, [](double step) { return ImPlot::PlotToPixels(step, 1).x; }, wide);
  std::size_t most = 1;
  for (const Crowd& crowd : crowds) most = std::max(most, crowd.count);
  const float y = ImPlot::PlotToPixels(0, static_cast<int>(lane) + 0.5).y;
  for (const Crowd& crowd : crowds) {
    if (crowd.count == 1) {
      draw_mark(list, {crowd.x, y}, em * 0.28f, mark_of(crowd.gate));
      continue;
    }
    const double share = std::log1p(static_cast<double>(crowd.count)) / std::log1p(static_cast<double>(most));
    const float half = em * (0.12f + 0.33f * static_cast<float>(share));
    list.AddRectFilled({crowd.x - wide / 2, y - half}, {crowd.x + wide / 2, y + half},
                       mark_colour(mark_of(crowd.gate)));
  }
}

void draw_marks(const DrawnTimeline& drawn) {
  const float em = ImGui::GetFontSize();
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  for (const Lane lane : {Lane::incident, Lane::failed, Lane::spike}) draw_crowds(drawn, lane);
  for (const TimelineEvent& event : drawn.events) {
    const ImVec2 centre = ImPlot::PlotToPixels(event.step, static_cast<int>(event.lane) + 0.5);
    const bool chosen = event.incident >= 0 && event.incident == drawn.state.session.selection().incident;
    if (chosen) {
      list.AddCircle(centre, em * 0.5f, ImGui::GetColorU32(colour().strong), 0, 1.5f);
      draw_mark(list, centre, em * 0.28f, mark_of(event.gate));
    }
    if (event.lane != Lane::forecast) continue;
    // From the step of the forecast to where the format is exceeded.
    const ImU32 ink = mark_colour(Mark::forecast);
    const float from = ImPlot::PlotToPixels(event.from, 1).x, to = ImPlot::PlotToPixels(event.to, 1).x;
    list.AddLine(centre, {from, centre.y}, ink);
    if (to >= from)
      list.AddRectFilled({from, centre.y - em * 0.3f}, {std::max(to, from + 3), centre.y + em * 0.3f}, ink);
    draw_mark(list, centre, em * 0.28f, Mark::forecast);
  }
}

}  // namespace

void draw_lanes(DrawnTimeline& drawn) {
  const float em = ImGui::GetFontSize();
  const bool alone = drawn.curves.empty();
  const int lanes = shown_lanes(drawn.events);
  const float height = em * (lanes == kLanes ? 5.4f : 4.2f) + (alone ? em * 1.4f : 0);
  if (!ImPlot::BeginPlot("##lanes", {width_of_steps(), height}, kBarePlot)) return;
  ImPlot::SetupAxes(nullptr, nullptr, alone ? 0 : kBareSteps,
                    ImPlotAxisFlags_Invert | ImPlotAxisFlags_Lock | ImPlotAxisFlags_NoTickMarks |
                        ImPlotAxisFlags_NoGridLines);
  ImPlot::SetupAxisLinks(ImAxis_X1, &drawn.state.steps.first, &drawn.state.steps.last);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, lanes, ImPlotCond_Always);
  const double at[kLanes] = {0.5, 1.5, 2.5, 3.5};
  const char* titles[kLanes];
  for (int i = 0; i < kLanes; ++i) titles[i] = lane_title(static_cast<Lane>(i));
  ImPlot::SetupAxisTicks(ImAxis_Y1, at, lanes, titles);
  ImPlot::SetupFinish();
  ImPlot::PushPlotClipRect();
  draw_selected_step(drawn.selected());
  draw_marks(drawn);
  ImPlot::PopPlotClipRect();
  react_to_mouse(drawn, true);
  ImPlot::EndPlot();
}

}  // namespace nanquest::viewer
