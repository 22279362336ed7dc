#include <algorithm>
#include <utility>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/panels/nothing.h"
#include "viewer/panels/reading.h"
#include "viewer/panels/trace/cells.h"
#include "viewer/panels/trace/view.h"

namespace nanquest::viewer {
namespace {

void refilter(TracePanel& view, const Session& session, const OpenIncident& incident) {
  const std::string key = std::to_string(session.reading()) + '\n' + view.filter;
  if (key == view.filtered_for) return;
  view.filtered_for = key;
  view.visible_ops = incident.trace.filter(view.filter);
  sort_ops(incident, view.order, view.visible_ops);
  view.scroll_to_op = true;
}

/// The graph of the chosen op needs room below the list, unless it was asked for.
bool shows_graph(const TracePanel& view) {
  return view.graph_asked.value_or(ImGui::GetContentRegionAvail().y >
                                   ImGui::GetTextLineHeightWithSpacing() * 20);
}

/// A button beside the last item that chooses the op; nothing if there is no such op, or no room.
void offer_op(UiState& state, const char* what, OpId op) {
  if (!op) return;
  const std::string label = std::string(what) + ": op " + std::to_string(op.row());
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  if (right - ImGui::GetItemRectMax().x <= ImGui::CalcTextSize(label.c_str()).x + 30) return;
  ImGui::SameLine();
  if (ImGui::SmallButton(label.c_str())) state.session.select_op(op.row());
}

}  // namespace

std::unique_ptr<PanelView> trace_view() {
  return std::make_unique<TracePanel>();
}

std::vector<Action> TracePanel::actions(UiState& state) {
  const auto focus = [this, &state] {
    state.wanted = Panel::trace;
    focus_filter = true;
  };
  const auto toggle = [this, &state] {
    state.wanted = Panel::trace;
    graph_asked = !graph_shown;
  };
  return {{"Ops", "Filter the ops", 0, focus, false, '/'},
          {"Ops", "Graph of the op, or not", ImGuiKey_G, toggle}};
}

void TracePanel::draw(UiState& state) {
  const bool focus = std::exchange(focus_filter, false);  // of this frame alone, whatever is drawn in it
  const OpenIncident* incident = state.session.incident();
  if (incident == nullptr) return draw_nothing(state.session);
  if (focus) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(std::min(ImGui::GetFontSize() * 18, ImGui::GetContentRegionAvail().x * 0.5f));
  ImGui::InputTextWithHint("##filter", "Filter (/)", filter, sizeof filter);
  refilter(*this, state.session, *incident);
  if (map_of != state.session.reading()) {
    map_of = state.session.reading();
    map = step_map(*incident);
    bad_parts.clear();
    seen_ops.clear();
  }
  ImGui::SameLine();
  const std::string shown =
      visible_ops.size() == incident->trace.size()
          ? counted(incident->trace.size(), "op")
          : grouped(visible_ops.size()) + " of " + counted(incident->trace.size(), "op");
  ImGui::TextDisabled("%s", shown.c_str());
  offer_op(state, "First with under 1 bit of headroom", incident->trace.first_tight());
  if (incident->replayed)
    offer_op(state, "First divergence from fp64", incident->replayed->first_divergence());
  else if (!state.options.still && !state.replaying.runs()) {
    ImGui::SameLine();
    replay_button(state, true);
  }
  draw_step_map(*this, state, *incident);
  follow_arrows(state, *this);
  scroll_to_op = scroll_to_op || state.session.selection().op != seen_op;
  seen_op = state.session.selection().op;
  const bool with_graph = shows_graph(*this);
  const float details =
      ImGui::GetTextLineHeightWithSpacing() * (with_graph ? 4.2f : 6.2f) + (with_graph ? graph_height() : 0);
  draw_op_table(*this, state, *incident,
                std::max(ImGui::GetContentRegionAvail().y - details, ImGui::GetTextLineHeight() * 5));
  draw_op_details(state, *incident, !with_graph);
  graph_shown = with_graph;
  if (with_graph) draw_op_graph(*this, state, *incident);
}

}  // namespace nanquest::viewer
