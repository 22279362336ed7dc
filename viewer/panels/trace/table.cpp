// The list of ops.
#include <algorithm>
#include <cmath>
#include <utility>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/panels/trace/cells.h"
#include "viewer/panels/trace/view.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

void setup_columns(bool wide, bool narrow, const OpenIncident& incident) {
  const float em = ImGui::GetFontSize();
  const auto fixed = [&](const char* name, float ems, bool shown = true, ImGuiTableColumnFlags flags = 0) {
    ImGui::TableSetupColumn(
        name, ImGuiTableColumnFlags_WidthFixed | (shown ? 0 : ImGuiTableColumnFlags_DefaultHide) | flags,
        em * ems);
  };
  constexpr ImGuiTableColumnFlags largest = ImGuiTableColumnFlags_PreferSortDescending;
  ImGui::TableSetupColumn("Op", ImGuiTableColumnFlags_WidthFixed,
                          column_width(std::to_string(incident.trace.size()), 2.6f));
  fixed("##mark", 1.1f);
  ImGui::TableSetupColumn("Name", ImGuiTableColumnFlags_WidthStretch, 1.2f);
  ImGui::TableSetupColumn("Module", ImGuiTableColumnFlags_WidthStretch, 1.0f);
  fixed("Phase", 4.6f, wide);
  fixed("Formats", 7.0f, wide);
  fixed("Max |x| read", 5.2f, wide, largest);
  fixed("Max |x|", 4.6f, !narrow, largest);
  fixed(wide ? "Headroom, bits" : "Headroom", wide ? 7.0f : 5.2f);
  fixed("Not finite", wide ? 8.0f : 5.6f, true, largest);
  const bool again = incident.replayed.has_value();
  fixed("In fp32", 5.2f, again && wide, largest);
  fixed("In fp64", 5.2f, again && !narrow, largest);
  fixed("Off fp64", 5.2f, again && !narrow, largest);
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableHeadersRow();
}

void row_of(UiState& state, const OpenIncident& incident, OpId op) {
  const TraceView& trace = incident.trace;
  const TraceLine line = trace.line(op);
  const bool chosen = chosen_op(state) == op;
  ImGui::PushID(op.row());
  ImGui::TableNextRow();
  if (trace.mark(op) == OpMark::culprit)
    ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1,
                           ImGui::GetColorU32({colour().vermillion.x, colour().vermillion.y, 0, 0.45f}));
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
  if (ImGui::TableNextColumn()) clipped_path(line.module, ImGui::GetContentRegionAvail().x);
  text(std::string(phase_name(line.phase)));
  text(line.read_formats + (line.write_format.empty() ? "" : " > " + line.write_format));
  text(amax_text(line.read));
  text(amax_text(line.written));
  if (ImGui::TableNextColumn()) draw_room(line.written);
  if (ImGui::TableNextColumn()) draw_bad(line.written);
  draw_replayed(incident, op);
  ImGui::PopID();
}

/// Where `op` stands in the list; of ops in the order in which they ran, where it would stand.
std::vector<OpId>::const_iterator place_of(const TracePanel& view, OpId op) {
  const std::vector<OpId>& ops = view.visible_ops;
  return view.order == OpOrder{} ? std::ranges::lower_bound(ops, op) : std::ranges::find(ops, op);
}

/// The order that was asked for by clicks on the heads of the columns: a third click gives the ops as they
/// ran.
void sort_as_asked(TracePanel& view, const OpenIncident& incident) {
  const ImGuiTableSortSpecs* wanted = ImGui::TableGetSortSpecs();
  if (wanted == nullptr) return;
  OpOrder order;
  if (wanted->SpecsCount > 0)
    order = {static_cast<TraceColumn>(wanted->Specs[0].ColumnIndex),
             wanted->Specs[0].SortDirection == ImGuiSortDirection_Descending};
  if (order == view.order) return;
  view.order = order;
  sort_ops(incident, order, view.visible_ops);
  view.scroll_to_op = true;
}

}  // namespace

void follow_arrows(UiState& state, const TracePanel& view) {
  const std::vector<OpId>& ops = view.visible_ops;
  if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) || ImGui::GetIO().WantTextInput ||
      ops.empty())
    return;
  const int by = ImGui::IsKeyPressed(ImGuiKey_DownArrow) ? 1 : ImGui::IsKeyPressed(ImGuiKey_UpArrow) ? -1 : 0;
  if (by == 0) return;
  const auto at = place_of(view, chosen_op(state));
  const auto next = std::clamp<std::ptrdiff_t>(at - ops.begin() + by, 0, std::ssize(ops) - 1);
  state.session.select_op((ops.begin() + next)->row());
}

void draw_op_table(TracePanel& view, UiState& state, const OpenIncident& incident, float height) {
  const bool wide = ImGui::GetContentRegionAvail().x > ImGui::GetFontSize() * 55;
  const bool narrow = ImGui::GetContentRegionAvail().x < ImGui::GetFontSize() * 34;
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_Resizable |
                                ImGuiTableFlags_Hideable | ImGuiTableFlags_Sortable |
                                ImGuiTableFlags_SortTristate | ImGuiTableFlags_BordersInnerV |
                                ImGuiTableFlags_NoSavedSettings;
  if (!ImGui::BeginTable(wide     ? "ops wide"
                         : narrow ? "ops narrow"
                                  : "ops",
                         static_cast<int>(TraceColumn::count), flags, {0, height}))
    return;
  setup_columns(wide, narrow, incident);
  sort_as_asked(view, incident);
  int chosen = -1;
  const std::vector<OpId>& ops = view.visible_ops;
  const auto found = place_of(view, chosen_op(state));
  if (found != ops.end() && *found == chosen_op(state)) chosen = static_cast<int>(found - ops.begin());
  if ((view.scroll_to_op || view.scrolled_at != height) && chosen >= 0) {
    const float row = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
    ImGui::SetScrollY(row * std::max(0.0f, static_cast<float>(chosen) - std::floor(height * 0.4f / row)));
  }
  view.scroll_to_op = false;
  view.scrolled_at = height;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(ops.size()));
  view.seen_ops.clear();
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const float at = ImGui::GetCursorScreenPos().y;
      row_of(state, incident, *(ops.begin() + i));
      if (at >= top && at < bottom) view.seen_ops.push_back(*(ops.begin() + i));
    }
  ImGui::EndTable();
}

}  // namespace nanquest::viewer
