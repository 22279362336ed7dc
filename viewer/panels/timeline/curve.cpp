// One curve of the timeline, with what is beside it.
#include <algorithm>
#include <limits>

#include "viewer/model/numbers.h"
#include "viewer/panels/timeline/drawn.h"
#include "viewer/panels/timeline/measure.h"
#include "viewer/ui/run_lines.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

/// The curve's title, inside its plot, in the space that fitted values leave free: beside a low plot it would
/// not fit.
void draw_title(const TimelineCurve& curve, ImVec4 ink) {
  const std::string other =
      curve.rehearsed.empty()
          ? ""
          : "   - - -  " + counted(curve.rehearsed.size(), "rehearsed run") + ", those that cure it brighter";
  const ImVec2 at = ImPlot::GetPlotPos(), size = ImGui::CalcTextSize((curve.title + other).c_str());
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  list.AddRectFilled({at.x + 4, at.y + 2}, {at.x + size.x + 12, at.y + size.y + 4},
                     faint(colour().plot, 0.8f), 3);
  list.AddText({at.x + 8, at.y + 3}, ImGui::GetColorU32(ink), curve.title.c_str());
  if (!other.empty())
    list.AddText({at.x + 8 + ImGui::CalcTextSize(curve.title.c_str()).x, at.y + 3},
                 ImGui::GetColorU32(colour().text), other.c_str());
}

/// Before the numbers of steps, where a title below them would take the height of half a curve.
void name_steps(ImVec2 corner) {
  const float em = ImGui::GetFontSize();
  ImGui::GetWindowDrawList()->AddText({corner.x - ImGui::CalcTextSize("step").x - em, corner.y + em * 0.3f},
                                      ImGui::GetColorU32(colour().muted), "step");
}

}  // namespace

float steps_height() {
  return ImGui::GetFontSize() * 1.3f;
}

void draw_curve(DrawnTimeline& drawn, const TimelineCurve& curve, ShownValues& shown, float height,
                bool last) {
  const History& history = *curve.history;
  if (!ImPlot::BeginPlot(("##" + curve.name).c_str(), {width_of_steps(), height}, kBarePlot)) return;
  const float em = ImGui::GetFontSize(), inside = height - (last ? steps_height() : 0) - em * 0.5f;
  setup_curves(drawn.state.steps, shown,
               {nullptr, nullptr, last ? 0 : kBareSteps, curve.logarithmic, curve.low,
                curve.high, inside, std::min(em * 1.4f, inside * 0.3f)});
  const auto [first, end] = drawn.state.steps.rows(history);
  const double foot = curve.logarithmic ? curve.low : -std::numeric_limits<double>::infinity();
  const bool alone = drawn.state.session.others().empty();
  ImPlotSpec spec;
  spec.LineColor = series_colour(static_cast<std::size_t>(&curve - drawn.curves.data()));
  spec.LineWeight = 1.6f;
  if (alone)
    for (const Curve& run : finite_runs(history, curve.shown(), first, end, foot, ImPlot::GetPlotSize().x))
      if (!run.x.empty())
        ImPlot::PlotLine(curve.title.c_str(), run.x.data(), run.y.data(), static_cast<int>(run.x.size()),
                         spec);
  ImPlot::PushPlotClipRect();
  if (alone) draw_unsmoothed(curve, drawn.state.steps, foot, spec.LineColor);
  for (const RehearsedCurve* run : curve.rehearsed) {
    const auto [from, to] = drawn.state.steps.rows(run->history);
    for (const Curve& piece :
         finite_runs(run->history, *run->losses(), from, to, foot, ImPlot::GetPlotSize().x))
      draw_dashes(piece, kDashes,
                  faint(run->cures ? colour().sky : colour().muted, run->cures ? 0.9f : 0.55f));
  }
  if (!alone) {
    // The open one last: on top.
    const std::size_t runs = drawn.state.session.comparison()->runs.size();
    for (const RunCurve& other : curve.beside) draw_run_curve(other, drawn.state.steps, foot, runs);
    draw_run_curve(curve, drawn.state.steps, foot, runs);
  }
  draw_selected_step(drawn.selected());
  if (const std::size_t given = std::max(first, curve.given_from); given < end && &history == &drawn.history)
    draw_bad_lane(history, *curve.values, given, end, ImGui::GetFontSize() * 0.5f);
  draw_title(curve, alone ? spec.LineColor : colour().text);
  draw_measure(drawn.measure, curve);
  ImPlot::PopPlotClipRect();
  if (!drawn.state.options.still) react_to_drag(drawn.measure, curve);
  react_to_mouse(drawn, false);
  const ImVec2 corner{ImPlot::GetPlotPos().x, ImPlot::GetPlotPos().y + ImPlot::GetPlotSize().y};
  ImPlot::EndPlot();
  if (last) name_steps(corner);
}

}  // namespace nanquest::viewer
