#include <algorithm>
#include <memory>

#include "viewer/panels/run_legend.h"
#include "viewer/panels/timeline/drawn.h"
#include "viewer/panels/timeline/measure.h"
#include "viewer/panels/timeline/view.h"

namespace nanquest::viewer {
namespace {

/// Without history, only the steps with events exist.
void fit_steps(UiState& state, const std::vector<TimelineEvent>& events) {
  StepRange& steps = state.steps;
  state.fit_steps();
  if (state.session.steps_shown() || events.empty()) return;
  const auto [first, last] = std::ranges::minmax(events, {}, &TimelineEvent::step);
  steps.fit(first.step, last.step);
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
  DrawnTimeline drawn{state, history, curves, events, measure};
  if (curves.empty() && drawn.events.empty())
    return ImGui::TextWrapped("%s",
                              info_of(Panel::timeline).page(state.session, Extent::glance).headline.c_str());
  fit_steps(state, events);
  draw_run_legend(state);
  const DragMeasures drag;
  const bool aligned = begin_plots_of_steps();
  draw_lanes(drawn);
  const float em = ImGui::GetFontSize(), gap = ImGui::GetStyle().ItemSpacing.y;
  const auto count = static_cast<float>(std::max<std::size_t>(curves.size(), 1));
  // The last one has the steps' numbers; what doesn't fit is reached by scrolling.
  const float axis = steps_height();
  const float each = std::max(em * 2.2f, (ImGui::GetContentRegionAvail().y - axis) / count - gap);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const bool last = i + 1 == curves.size();
    draw_curve(drawn, curves[i], values[curves[i].name], each + (last ? axis : 0), last);
  }
  end_plots_of_steps(aligned);
}

}  // namespace nanquest::viewer
