#include "viewer/ui/marks.h"

#include <algorithm>

#include "viewer/ui/style.h"

namespace nanquest::viewer {

ImU32 mark_colour(Mark mark) {
  switch (mark) {
    case Mark::nan:
      return ImGui::GetColorU32(colour().vermillion);
    case Mark::pos_inf:
      return ImGui::GetColorU32(colour().pink);
    case Mark::neg_inf:
      return ImGui::GetColorU32(colour().strong);
    case Mark::spike:
      return ImGui::GetColorU32(colour().orange);
    case Mark::scale_overflow:
    case Mark::failed:
      return ImGui::GetColorU32(colour().muted);
    case Mark::forecast:
      return ImGui::GetColorU32(colour().yellow);
    case Mark::verified:
      return ImGui::GetColorU32(colour().green);
    case Mark::finite:
      break;
  }
  return ImGui::GetColorU32(colour().sky);
}

void draw_shape(ImDrawList& list, ImVec2 c, float r, Mark mark, ImU32 ink) {
  switch (mark) {
    case Mark::nan:
      list.AddLine({c.x - r, c.y - r}, {c.x + r, c.y + r}, ink, std::max(1.5f, r * 0.45f));
      list.AddLine({c.x - r, c.y + r}, {c.x + r, c.y - r}, ink, std::max(1.5f, r * 0.45f));
      break;
    case Mark::pos_inf:
      list.AddTriangleFilled({c.x, c.y - r}, {c.x + r, c.y + r}, {c.x - r, c.y + r}, ink);
      break;
    case Mark::neg_inf:
      list.AddTriangleFilled({c.x - r, c.y - r}, {c.x + r, c.y - r}, {c.x, c.y + r}, ink);
      break;
    case Mark::spike:
      list.AddQuadFilled({c.x, c.y - r}, {c.x + r, c.y}, {c.x, c.y + r}, {c.x - r, c.y}, ink);
      break;
    case Mark::scale_overflow:
      list.AddRectFilled({c.x - r, c.y - r}, {c.x + r, c.y + r}, ink);
      break;
    case Mark::finite:
      list.AddCircle(c, r * 0.85f, ink, 0, std::max(1.5f, r * 0.4f));
      break;
    case Mark::verified: {
      const ImVec2 tick[] = {{c.x - r, c.y}, {c.x - r * 0.3f, c.y + r * 0.8f}, {c.x + r, c.y - r * 0.8f}};
      list.AddPolyline(tick, 3, ink, 0, std::max(2.0f, r * 0.5f));
      break;
    }
    case Mark::forecast:
      list.AddTriangleFilled({c.x - r, c.y - r}, {c.x + r, c.y}, {c.x - r, c.y + r}, ink);
      break;
    case Mark::failed:
      list.AddRectFilled({c.x - r, c.y - r * 0.25f}, {c.x + r, c.y + r * 0.25f}, ink);
      break;
  }
}

void draw_mark(ImDrawList& list, ImVec2 centre, float r, Mark mark) {
  draw_shape(list, centre, r, mark, mark_colour(mark));
}

void inline_mark(Mark mark, float lower) {
  const float h = ImGui::GetTextLineHeight();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_mark(*ImGui::GetWindowDrawList(), {at.x + h * 0.4f, at.y + h * 0.5f + lower}, h * 0.27f, mark);
  ImGui::Dummy({h * 0.8f, h});
  ImGui::SameLine(0, h * 0.3f);
}

Mark worst(const Extremes& e) {
  return e.nan ? Mark::nan : e.pos_inf ? Mark::pos_inf : e.neg_inf ? Mark::neg_inf : Mark::finite;
}

Mark mark_of(Gate gate) {
  return gate == Gate::spike ? Mark::spike : gate == Gate::scale_overflow ? Mark::scale_overflow : Mark::nan;
}

}  // namespace nanquest::viewer
