#include "viewer/panels/trace/cells.h"

#include <algorithm>
#include <cmath>

#include "imgui.h"
#include "viewer/model/numbers.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {

void draw_op_mark(OpMark mark) {
  const float h = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos(), centre{at.x + h * 0.45f, at.y + h * 0.5f};
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float r = h * 0.26f;
  switch (mark) {
    case OpMark::culprit:
      list.AddCircleFilled(centre, h * 0.5f, ImGui::GetColorU32(colour().vermillion));
      draw_shape(list, centre, r, Mark::nan, ImGui::GetColorU32(colour().on_chip));
      break;
    case OpMark::lineage:
      list.AddTriangleFilled({centre.x - r, centre.y - r}, {centre.x + r, centre.y},
                             {centre.x - r, centre.y + r}, ImGui::GetColorU32(colour().orange));
      break;
    case OpMark::birth:
      draw_mark(list, centre, r, Mark::nan);
      break;
    case OpMark::suppressed:
      list.AddCircle(centre, r, ImGui::GetColorU32(colour().muted), 0, 1.5f);
      break;
    case OpMark::carries:
      list.AddRectFilled({centre.x - r * 0.5f, centre.y - r * 0.5f},
                         {centre.x + r * 0.5f, centre.y + r * 0.5f}, ImGui::GetColorU32(colour().pink));
      break;
    case OpMark::none:
      break;
  }
  ImGui::Dummy({h, h});
  if (mark != OpMark::none && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", mark_words(mark));
}

void draw_room(const ValueRange& range) {
  if (!range.has_headroom) return;
  if (!std::isfinite(range.headroom)) return ImGui::TextDisabled("%s", room_words(range));
  const float h = ImGui::GetTextLineHeight(), width = h * 1.6f;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float share = static_cast<float>(std::clamp(range.headroom / 16, 0.0, 1.0));
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled({at.x, at.y + h * 0.3f}, {at.x + width, at.y + h * 0.7f},
                     ImGui::GetColorU32(ImGuiCol_Button));
  const ImVec4 ink = range.headroom < 1   ? colour().vermillion
                     : range.headroom < 4 ? colour().orange
                                          : colour().green;
  list.AddRectFilled({at.x, at.y + h * 0.3f}, {at.x + std::max(2.0f, width * share), at.y + h * 0.7f},
                     ImGui::GetColorU32(ink));
  ImGui::Dummy({width, h});
  ImGui::SameLine();
  ImGui::Text("%.1f", range.headroom);
}

void draw_bad(const ValueRange& r) {
  if (!r.known || r.non_finite() == 0) return;
  inline_mark(r.nan ? Mark::nan : r.pos_inf ? Mark::pos_inf : Mark::neg_inf);
  clipped_text(bad_text(r.nan, r.pos_inf, r.neg_inf), ImGui::GetContentRegionAvail().x);
}

void draw_replayed(const OpenIncident& incident, OpId op) {
  const auto cell = [](const std::string& text, bool far) {
    if (!ImGui::TableNextColumn()) return;
    if (far) ImGui::PushStyleColor(ImGuiCol_Text, colour().vermillion);
    clipped_text(text, ImGui::GetContentRegionAvail().x);
    if (far) ImGui::PopStyleColor();
  };
  const Replayed none;
  const Replayed& again = incident.replayed ? *incident.replayed : none;
  const auto recorded = again.recorded.at(op), fp32 = again.fp32.at(op), fp64 = again.fp64.at(op);
  cell(replayed_text(fp32), fp32 && fp32->non_finite() > 0);
  cell(replayed_text(fp64), fp64 && fp64->non_finite() > 0);
  cell(off_text(recorded, fp64), far_off(recorded, fp64));
}

}  // namespace nanquest::viewer
