#include <algorithm>
#include <cmath>
#include <limits>

#include "viewer/model/numbers.h"
#include "viewer/panels/run_legend.h"
#include "viewer/panels/timeline/measure.h"
#include "viewer/panels/timeline/view.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/run_lines.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

using Lane = TimelineEvent::Lane;

constexpr ImPlotAxisFlags kBareSteps = ImPlotAxisFlags_NoTickLabels;

/// The panel while it is drawn.
struct Drawn {
  UiState& state;
  const History& history;
  const std::vector<TimelineCurve>& curves;
  const std::vector<TimelineEvent>& events;
  std::optional<Measure>& measure;

  double selected() const { return state.session.selection().step; }
};

/// Everything that is known of a step.
void tell_step(const Drawn& drawn, double step) {
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

/// What a click selects: the event under the mouse, otherwise the nearest row.
void react(Drawn& drawn, bool lanes) {
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

/// Events of one lane whose marks would cover each other are a bar whose height says how many they are.
void draw_crowds(const Drawn& drawn, Lane lane) {
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

void draw_marks(const Drawn& drawn) {
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

void draw_lanes(Drawn& drawn) {
  const float em = ImGui::GetFontSize();
  const bool alone = drawn.curves.empty();
  const int lanes = shown_lanes(drawn.events);
  const float height = em * (lanes == kLanes ? 5.4f : 4.2f) + (alone ? em * 1.4f : 0);
  if (!ImPlot::BeginPlot("##lanes", {-1, height}, kBarePlot)) return;
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
  react(drawn, true);
  ImPlot::EndPlot();
}

/// Without history, only the steps with events exist.
void fit_steps(UiState& state, const std::vector<TimelineEvent>& events) {
  StepRange& steps = state.steps;
  state.fit_steps();
  if (state.session.steps_shown() || events.empty()) return;
  const auto [first, last] = std::ranges::minmax(events, {}, &TimelineEvent::step);
  steps.fit(first.step, last.step);
}

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

/// Pixels below the last plot, for the numbers of steps.
float steps_height() {
  return ImGui::GetFontSize() * 2.2f;
}

void draw_curve(Drawn& drawn, const TimelineCurve& curve, ShownValues& shown, float height, bool last) {
  const History& history = *curve.history;
  if (!ImPlot::BeginPlot(("##" + curve.name).c_str(), {-1, height}, kBarePlot)) return;
  const float em = ImGui::GetFontSize();
  setup_curves(drawn.state.steps, shown,
               {last ? "step" : nullptr, nullptr, last ? 0 : kBareSteps, curve.logarithmic, curve.low,
                curve.high, height - (last ? steps_height() : 0) - em * 0.5f, em * 1.4f});
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
  react(drawn, false);
  ImPlot::EndPlot();
}

}  // namespace

std::unique_ptr<PanelView> timeline_view() {
  return std::make_unique<TimelinePanel>();
}

std::vector<Action> TimelinePanel::actions(UiState& state) {
  const Headroom& headroom = state.session.headroom();
  if (headroom.empty()) return {};
  const auto show = [&state](const std::string& place) { state.go(Link::to_place(place)); };
  if (!state.session.selection().place.empty())
    return {{"Headroom", "Least headroom of all places", 0, [show] { show(""); }}};
  return {{"Headroom", "Headroom of the nearest place", 0,
           [show, place = headroom.places().front().name] { show(place); }}};
}

void TimelinePanel::draw(UiState& state) {
  const History& history = state.session.history();
  const std::string& place = state.session.selection().place;
  const double smoothing = state.session.selection().smoothing;
  if (made_of != state.session.content() || place != place_of || smoothing != smoothing_of) {
    curves = timeline_curves(state.session);
    place_of = place;
    smoothing_of = smoothing;
    events = timeline_events(state.session);
    made_of = state.session.content();
  }
  if (!state.options.still && ImGui::IsKeyPressed(ImGuiKey_Escape, false)) measure.reset();
  Drawn drawn{state, history, curves, events, measure};
  if (curves.empty() && drawn.events.empty())
    return ImGui::TextWrapped("%s",
                              info_of(Panel::timeline).page(state.session, Extent::glance).headline.c_str());
  fit_steps(state, events);
  draw_run_legend(state);
  const DragMeasures drag;
  const bool aligned = ImPlot::BeginAlignedPlots("timeline");
  draw_lanes(drawn);
  const float em = ImGui::GetFontSize(), gap = ImGui::GetStyle().ItemSpacing.y;
  const auto count = static_cast<float>(std::max<std::size_t>(curves.size(), 1));
  // The last one has the steps' numbers; what doesn't fit is reached by scrolling.
  const float axis = steps_height();
  const float each = std::max(em * 4, (ImGui::GetContentRegionAvail().y - axis) / count - gap);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const bool last = i + 1 == curves.size();
    draw_curve(drawn, curves[i], values[curves[i].name], each + (last ? axis : 0), last);
  }
  if (aligned) ImPlot::EndAlignedPlots();
}

}  // namespace nanquest::viewer
