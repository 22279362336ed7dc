// The ops around the chosen one, as boxes and lines.
#include <algorithm>
#include <string>
#include <vector>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/panels/trace/cells.h"
#include "viewer/panels/trace/view.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

constexpr int kLevels = 2;

std::string label_of(const TraceView& trace, const OpGraph::Node& node) {
  const std::string name = trace.line(node.op).name;
  const std::size_t colons = name.rfind(':');
  const std::string text =
      std::to_string(node.op.row()) + " " + (colons == std::string::npos ? name : name.substr(colons + 1));
  return node.cast.empty() ? text : text + "  " + node.cast;
}

void tell(const TraceView& trace, const OpGraph::Node& node) {
  const TraceLine line = trace.line(node.op);
  std::string text = std::to_string(node.op.row()) + "  " + line.name +
                     (line.module.empty() ? "" : "\n" + line.module) + "\n" + line.read_formats + " > " +
                     line.write_format + " " + line.write_shape;
  if (line.written.known) text += "\nmax |x| " + amax_text(line.written);
  if (const ValueRange& w = line.written; w.non_finite() > 0)
    text += ", " + bad_text(w.nan, w.pos_inf, w.neg_inf);
  if (!node.cast.empty()) text += "\nonly changes the format";
  ImGui::SetTooltip("%s", text.c_str());
}

/// Where the boxes of a graph are.
struct Places {
  ImVec2 from;
  float column = 0, row = 0, width = 0, height = 0;
  std::vector<ImVec2> of;  ///< upper left corners, by node
};

Places places_of(const OpGraph& graph) {
  Places p;
  p.from = ImGui::GetCursorScreenPos();
  const float em = ImGui::GetFontSize();
  p.column = ImGui::GetContentRegionAvail().x / static_cast<float>(2 * kLevels + 1);
  p.width = p.column - em;
  p.height = ImGui::GetTextLineHeight() + 2;
  p.row = p.height + em * 0.25f;
  std::vector<std::size_t> count(static_cast<std::size_t>(2 * kLevels + 1));
  for (const OpGraph::Node& node : graph.nodes) ++count[static_cast<std::size_t>(node.level + kLevels)];
  std::vector<std::size_t> next(count.size());
  for (const OpGraph::Node& node : graph.nodes) {
    const auto level = static_cast<std::size_t>(node.level + kLevels);
    const float above = static_cast<float>(kGraphRows - count[level]) / 2;
    p.of.push_back({p.from.x + static_cast<float>(level) * p.column,
                    p.from.y + (above + static_cast<float>(next[level]++)) * p.row});
  }
  return p;
}

void draw_edges(const OpGraph& graph, const Places& places) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  for (const OpGraph::Edge& edge : graph.edges) {
    const bool back = graph.nodes[edge.from].level >= graph.nodes[edge.to].level;
    const bool cast = !graph.nodes[edge.from].cast.empty();
    const ImVec2 a{places.of[edge.from].x + places.width, places.of[edge.from].y + places.height / 2};
    const ImVec2 b{places.of[edge.to].x, places.of[edge.to].y + places.height / 2};
    const ImU32 ink = cast ? ImGui::GetColorU32(colour().orange) : faint(colour().text, back ? 0.25f : 0.6f);
    list.AddBezierCubic(a, {(a.x + b.x) / 2, a.y}, {(a.x + b.x) / 2, b.y}, b, ink, cast ? 2.0f : 1.2f);
  }
}

void draw_node(UiState& state, const TraceView& trace, const OpGraph::Node& node, ImVec2 at,
               const Places& places) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 end{at.x + places.width, at.y + places.height};
  ImGui::SetCursorScreenPos(at);
  const std::string label = label_of(trace, node);
  ImGui::PushID(node.op.row());
  const bool clicked = ImGui::InvisibleButton(("graph " + std::to_string(node.op.row())).c_str(),
                                              {places.width, places.height});
  ImGui::PopID();
  const bool over = ImGui::IsItemHovered() && !state.options.still;
  if (clicked) state.session.select_op(node.op.row());
  if (over) tell(trace, node);
  list.AddRectFilled(at, end, ImGui::GetColorU32(over ? ImGuiCol_ButtonHovered : ImGuiCol_Button), 3);
  if (node.level == 0) list.AddRect(at, end, ImGui::GetColorU32(colour().sky), 3.0f, 2.0f);
  if (!node.cast.empty()) list.AddRect(at, end, ImGui::GetColorU32(colour().orange), 3.0f, 1.5f);
  list.PushClipRect(at, end, true);
  float x = at.x + 4;
  if (trace.made(node.op).total() > 0) {
    const float r = places.height * 0.24f;
    const BadCounts made = trace.made(node.op);
    draw_mark(list, {x + r, at.y + places.height / 2}, r,
              made.nan > 0       ? Mark::nan
              : made.pos_inf > 0 ? Mark::pos_inf
                                 : Mark::neg_inf);
    x += places.height * 0.7f;
  }
  list.AddText({x, at.y + 1}, ImGui::GetColorU32(colour().text), label.c_str());
  list.PopClipRect();
}

}  // namespace

float graph_height() {
  return static_cast<float>(kGraphRows) * (ImGui::GetTextLineHeight() + 2 + ImGui::GetFontSize() * 0.25f) +
         ImGui::GetTextLineHeightWithSpacing();
}

void draw_op_graph(TracePanel& view, UiState& state, const OpenIncident& incident) {
  const OpId op = chosen_op(state);
  if (!op) return;
  const std::uint64_t reading = state.session.reading();
  if (view.graph_of != op || view.graph_reading != reading)
    view.graph = op_graph(incident.trace, op, kLevels, kGraphRows);
  view.graph_of = op;
  view.graph_reading = reading;
  const Places places = places_of(view.graph);
  draw_edges(view.graph, places);
  for (std::size_t i = 0; i < view.graph.nodes.size(); ++i)
    draw_node(state, incident.trace, view.graph.nodes[i], places.of[i], places);
  const float below = places.from.y + static_cast<float>(kGraphRows) * places.row;
  for (int level = -kLevels; level <= kLevels; ++level) {
    const std::size_t missing = view.graph.missing(level);
    ImGui::SetCursorScreenPos({places.from.x + static_cast<float>(level + kLevels) * places.column, below});
    const std::string more = missing > 0 ? "and " + grouped(missing) + " more" : "";
    const char* heads[] = {"their producers", "producers", "chosen", "consumers", "their consumers"};
    ImGui::TextDisabled("%s", more.empty() ? heads[level + kLevels]
                                           : (std::string(heads[level + kLevels]) + ", " + more).c_str());
  }
}

}  // namespace nanquest::viewer
