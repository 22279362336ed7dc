#include <algorithm>
#include <cmath>
#include <utility>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/trace/view.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

void draw_op_mark(OpMark mark) {
  const float h = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos(), centre{at.x + h * 0.45f, at.y + h * 0.5f};
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float r = h * 0.26f;
  switch (mark) {
    case OpMark::culprit:
      list.AddCircleFilled(centre, h * 0.5f, ImGui::GetColorU32(colour::vermillion));
      draw_shape(list, centre, r, Mark::nan, IM_COL32(255, 255, 255, 255));
      break;
    case OpMark::lineage:
      list.AddTriangleFilled({centre.x - r, centre.y - r}, {centre.x + r, centre.y},
                             {centre.x - r, centre.y + r}, ImGui::GetColorU32(colour::orange));
      break;
    case OpMark::birth:
      draw_mark(list, centre, r, Mark::nan);
      break;
    case OpMark::suppressed:
      list.AddCircle(centre, r, ImGui::GetColorU32(colour::muted), 0, 1.5f);
      break;
    case OpMark::carries:
      list.AddRectFilled({centre.x - r * 0.5f, centre.y - r * 0.5f},
                         {centre.x + r * 0.5f, centre.y + r * 0.5f}, ImGui::GetColorU32(colour::pink));
      break;
    case OpMark::none:
      break;
  }
  ImGui::Dummy({h, h});
  if (mark != OpMark::none && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", mark_words(mark));
}

/// Room to the format's end: a bar that is empty at 0 bits, and the number.
void draw_room(const ValueRange& range) {
  if (!range.has_headroom) return;
  if (!std::isfinite(range.headroom))
    return ImGui::TextDisabled("%s", range.non_finite() ? "none finite" : "zeros");
  const float h = ImGui::GetTextLineHeight(), width = h * 1.6f;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float share = static_cast<float>(std::clamp(range.headroom / 16, 0.0, 1.0));
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({at.x, at.y + h * 0.3f}, {at.x + width, at.y + h * 0.7f},
                     ImGui::GetColorU32(ImGuiCol_Button));
  const ImVec4 ink = range.headroom < 1   ? colour::vermillion
                     : range.headroom < 4 ? colour::orange
                                          : colour::green;
  list.AddRectFilled({at.x, at.y + h * 0.3f}, {at.x + std::max(2.0f, width * share), at.y + h * 0.7f},
                     ImGui::GetColorU32(ink));
  ImGui::Dummy({width, h});
  ImGui::SameLine();
  ImGui::Text("%.1f", range.headroom);
}

void bad_cell(const ValueRange& r) {
  if (!r.known || r.non_finite() == 0) return;
  inline_mark(r.nan ? Mark::nan : r.pos_inf ? Mark::pos_inf : Mark::neg_inf);
  clipped_text(bad_text(r.nan, r.pos_inf, r.neg_inf), ImGui::GetContentRegionAvail().x);
}

enum Column { c_op, c_mark, c_name, c_module, c_phase, c_formats, c_read, c_written, c_room, c_bad, c_count };

void setup_columns(bool wide, bool narrow, std::size_t ops) {
  const float em = ImGui::GetFontSize();
  const auto fixed = [&](const char* name, float ems, bool shown = true) {
    ImGui::TableSetupColumn(
        name, ImGuiTableColumnFlags_WidthFixed | (shown ? 0 : ImGuiTableColumnFlags_DefaultHide), em * ems);
  };
  ImGui::TableSetupColumn("Op", ImGuiTableColumnFlags_WidthFixed, column_width(std::to_string(ops), 2.6f));
  fixed("##mark", 1.1f);
  ImGui::TableSetupColumn("Name", ImGuiTableColumnFlags_WidthStretch, 1.2f);
  ImGui::TableSetupColumn("Module", ImGuiTableColumnFlags_WidthStretch, 1.0f);
  fixed("Phase", 4.6f, wide);
  fixed("Formats", 7.0f, wide);
  fixed("Read amax", 5.2f, wide);
  fixed("Amax", 4.6f, !narrow);
  fixed("Room, bits", 5.2f);
  fixed("Not finite", wide ? 8.0f : 5.6f);
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableHeadersRow();
}

OpId chosen_op(const UiState& state) {
  return OpId{state.session.selection().op};
}

void row_of(UiState& state, const TraceView& trace, OpId op) {
  const TraceLine line = trace.line(op);
  const bool chosen = chosen_op(state) == op;
  ImGui::PushID(op.row());
  ImGui::TableNextRow();
  if (trace.mark(op) == OpMark::culprit)
    ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1,
                           ImGui::GetColorU32({colour::vermillion.x, colour::vermillion.y, 0, 0.45f}));
  ImGui::TableNextColumn();
  const std::string index = std::to_string(op.row());
  if (ImGui::Selectable(index.c_str(), chosen,
                        ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap))
    state.session.select_op(op.row());
  ImGui::TableNextColumn();
  draw_op_mark(trace.mark(op));
  const auto text = [](const std::string& value) {
    if (ImGui::TableNextColumn()) clipped_text(value, ImGui::GetContentRegionAvail().x);
  };
  text(line.name);
  text(line.module);
  text(std::string(phase_name(line.phase)));
  text(line.read_formats + (line.write_format.empty() ? "" : " > " + line.write_format));
  text(amax_text(line.read));
  text(amax_text(line.written));
  if (ImGui::TableNextColumn()) draw_room(line.written);
  if (ImGui::TableNextColumn()) bad_cell(line.written);
  ImGui::PopID();
}

void op_links(UiState& state, const char* label, const std::vector<OpId>& ops, const TraceView& trace) {
  if (ops.empty()) return;
  ImGui::TextDisabled("%s", label);
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
  for (std::size_t i = 0; i < ops.size() && i < 12; ++i) {
    const std::string text = std::to_string(ops[i].row()) + " " + trace.line(ops[i]).name;
    ImGui::SameLine();
    if (ImGui::GetCursorScreenPos().x + ImGui::CalcTextSize(text.c_str()).x >
        right - ImGui::GetFontSize() * 1.5f) {
      ImGui::TextDisabled("...");
      return;
    }
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::TextLink(text.c_str())) state.session.select_op(ops[i].row());
    ImGui::PopID();
  }
}

/// Lines below the list: where the op stands, who made its inputs, who reads its outputs, the way to the
/// loss.
void op_details(UiState& state, const OpenIncident& incident) {
  const OpId op = chosen_op(state);
  if (!op) return ImGui::TextDisabled("Click an op to follow it");
  const TraceLine line = incident.trace.line(op);
  std::string text = std::to_string(op.row()) + "  " + line.name + "  " + line.read_formats + " > " +
                     line.write_format + " " + line.write_shape;
  if (!line.node.empty()) text += "  in " + line.node;
  clipped_text(text, ImGui::GetContentRegionAvail().x);
  // Where a backward op was called from is the engine's; what it differentiates is the program's.
  if (const OpId forward{get(incident.doc, op).forward_op}; forward)
    op_links(state, "derivative of", {forward}, incident.trace);
  if (const std::string source = incident.trace.source(op); !source.empty())
    clipped_text(source, ImGui::GetContentRegionAvail().x);
  ImGui::PushID("made");
  op_links(state, "[ made by", incident.trace.producers(op), incident.trace);
  ImGui::PopID();
  ImGui::PushID("read");
  op_links(state, "] read by", incident.trace.consumers(op), incident.trace);
  ImGui::PopID();
  ImGui::PushID("way");
  std::vector<OpId> way;
  for (const std::int32_t step : incident.doc.culprit.lineage) way.emplace_back(step);
  op_links(state, "way to the loss", way, incident.trace);
  ImGui::PopID();
}

void refilter(TracePanel& view, const Session& session, const OpenIncident& incident) {
  const std::string key = std::to_string(session.reading()) + '\n' + view.filter;
  if (key == view.filtered_for) return;
  view.filtered_for = key;
  view.visible_ops = incident.trace.filter(view.filter);
  view.scroll_to_op = true;
}

void arrows(UiState& state, const std::vector<OpId>& ops) {
  if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) || ImGui::GetIO().WantTextInput ||
      ops.empty())
    return;
  const int by = ImGui::IsKeyPressed(ImGuiKey_DownArrow) ? 1 : ImGui::IsKeyPressed(ImGuiKey_UpArrow) ? -1 : 0;
  if (by == 0) return;
  const auto at = std::lower_bound(ops.begin(), ops.end(), chosen_op(state));
  const auto next = std::clamp<std::ptrdiff_t>(at - ops.begin() + by, 0, std::ssize(ops) - 1);
  state.session.select_op((ops.begin() + next)->row());
}

void op_table(TracePanel& view, UiState& state, const OpenIncident& incident, float height) {
  const bool wide = ImGui::GetContentRegionAvail().x > ImGui::GetFontSize() * 55;
  const bool narrow = ImGui::GetContentRegionAvail().x < ImGui::GetFontSize() * 34;
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_Resizable |
                                ImGuiTableFlags_Hideable | ImGuiTableFlags_BordersInnerV |
                                ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable(wide ? "ops wide" : narrow ? "ops narrow" : "ops", c_count, flags, {0, height}))
    return;
  setup_columns(wide, narrow, incident.trace.size());
  int chosen = -1;
  const std::vector<OpId>& ops = view.visible_ops;
  const auto found = std::lower_bound(ops.begin(), ops.end(), chosen_op(state));
  if (found != ops.end() && *found == chosen_op(state)) chosen = static_cast<int>(found - ops.begin());
  if ((view.scroll_to_op || view.scrolled_at != height) && chosen >= 0) {
    const float row = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
    ImGui::SetScrollY(row * std::max(0.0f, static_cast<float>(chosen) - std::floor(height * 0.4f / row)));
  }
  view.scroll_to_op = false;
  view.scrolled_at = height;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(ops.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      row_of(state, incident.trace, *(ops.begin() + i));
  ImGui::EndTable();
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
  return {{"Ops", "Filter the ops", 0, focus, false, '/'}};
}

void TracePanel::draw(UiState& state) {
  const bool focus = std::exchange(focus_filter, false);  // of this frame alone, whatever is drawn in it
  const OpenIncident* incident = state.session.incident();
  if (incident == nullptr) return ImGui::TextWrapped("%s", verdict_page(state.session).headline.c_str());
  if (focus) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(std::min(ImGui::GetFontSize() * 18, ImGui::GetContentRegionAvail().x * 0.5f));
  ImGui::InputTextWithHint("##filter", "Filter (/)", filter, sizeof filter);
  refilter(*this, state.session, *incident);
  ImGui::SameLine();
  const std::string shown =
      visible_ops.size() == incident->trace.size()
          ? counted(incident->trace.size(), "op")
          : grouped(visible_ops.size()) + " of " + counted(incident->trace.size(), "op");
  ImGui::TextDisabled("%s", shown.c_str());
  if (const OpId early = incident->trace.first_tight()) {
    const std::string label = "Under 1 bit of room first: op " + std::to_string(early.row());
    const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
    if (right - ImGui::GetItemRectMax().x > ImGui::CalcTextSize(label.c_str()).x + 30) {
      ImGui::SameLine();
      if (ImGui::SmallButton(label.c_str())) state.session.select_op(early.row());
    }
  }
  arrows(state, visible_ops);
  scroll_to_op = scroll_to_op || state.session.selection().op != seen_op;
  seen_op = state.session.selection().op;
  const float details = ImGui::GetTextLineHeightWithSpacing() * 6.2f;
  op_table(*this, state, *incident,
           std::max(ImGui::GetContentRegionAvail().y - details, ImGui::GetTextLineHeight() * 5));
  op_details(state, *incident);
}

}  // namespace nanquest::viewer
