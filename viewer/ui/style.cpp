#include "viewer/ui/style.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

extern const unsigned char nanquest_embedded_font[];
extern const unsigned int nanquest_embedded_font_size;

namespace nanquest::viewer {
namespace {

void load_font() {
  ImFontAtlas& fonts = *ImGui::GetIO().Fonts;
  if (!fonts.Fonts.empty()) return;
  if (nanquest_embedded_font_size == 0) {
    fonts.AddFontDefault();
    return;
  }
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  // The atlas reads this memory only; its interface is not const.
  fonts.AddFontFromMemoryTTF(const_cast<unsigned char*>(nanquest_embedded_font),
                             static_cast<int>(nanquest_embedded_font_size), 16.0f, &config);
}

ImVec4 with_alpha(ImVec4 c, float alpha) {
  return {c.x, c.y, c.z, alpha};
}

void colours(ImGuiStyle& style) {
  ImGui::StyleColorsDark(&style);
  ImVec4* c = style.Colors;
  c[ImGuiCol_Text] = colour::text;
  c[ImGuiCol_TextDisabled] = colour::muted;
  c[ImGuiCol_WindowBg] = c[ImGuiCol_ChildBg] = colour::ground;
  c[ImGuiCol_PopupBg] = c[ImGuiCol_MenuBarBg] = colour::raised;
  c[ImGuiCol_Border] = {0.20f, 0.23f, 0.27f, 1};
  c[ImGuiCol_FrameBg] = colour::raised;
  c[ImGuiCol_FrameBgHovered] = {0.17f, 0.20f, 0.24f, 1};
  c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] =
      c[ImGuiCol_TitleBgCollapsed] = {0.055f, 0.063f, 0.078f, 1};
  c[ImGuiCol_Button] = {0.16f, 0.19f, 0.23f, 1};
  c[ImGuiCol_ButtonHovered] = with_alpha(colour::sky, 0.35f);
  c[ImGuiCol_ButtonActive] = with_alpha(colour::sky, 0.55f);
  c[ImGuiCol_Header] = with_alpha(colour::sky, 0.22f);
  c[ImGuiCol_HeaderHovered] = with_alpha(colour::sky, 0.32f);
  c[ImGuiCol_HeaderActive] = with_alpha(colour::sky, 0.42f);
  c[ImGuiCol_CheckMark] = colour::sky;
  c[ImGuiCol_TableHeaderBg] = {0.10f, 0.118f, 0.145f, 1};
  c[ImGuiCol_TableRowBgAlt] = {1, 1, 1, 0.02f};
  c[ImGuiCol_TableBorderLight] = {0.16f, 0.18f, 0.21f, 1};
  c[ImGuiCol_NavCursor] = c[ImGuiCol_TextLink] = colour::sky;
}

}  // namespace

void apply_style(float scale) {
  load_font();
  ImGuiStyle style;
  colours(style);
  style.WindowPadding = {12, 10};
  style.ItemSpacing = {8, 6};
  style.CellPadding = {6, 3};
  style.FramePadding = {8, 4};
  style.FrameRounding = style.GrabRounding = style.TabRounding = 3;
  style.WindowRounding = style.ChildRounding = style.PopupRounding = 3;
  style.WindowBorderSize = 1;
  style.ScrollbarSize = 12;
  style.FontSizeBase = 16;
  style.ScaleAllSizes(scale);
  style.FontScaleMain = scale;
  ImGui::GetStyle() = style;

  // Ctrl would make a plot deaf; here it zooms the values.
  ImPlot::GetInputMap().OverrideMod = ImGuiMod_Super;
  ImPlotStyle& plot = ImPlot::GetStyle();
  plot = ImPlotStyle();
  ImPlot::StyleColorsDark(&plot);
  plot.Colors[ImPlotCol_FrameBg] = {0, 0, 0, 0};
  plot.Colors[ImPlotCol_PlotBg] = {0.055f, 0.063f, 0.078f, 1};
  plot.Colors[ImPlotCol_PlotBorder] = {0.20f, 0.23f, 0.27f, 1};
  plot.Colors[ImPlotCol_AxisText] = colour::muted;
  plot.Colors[ImPlotCol_AxisGrid] = {1, 1, 1, 0.10f};
  plot.Colors[ImPlotCol_LegendBg] = with_alpha(colour::ground, 0.9f);
  plot.PlotPadding = {4 * scale, 4 * scale};
  plot.MousePosPadding = {6 * scale, 6 * scale};
}

ImU32 mark_colour(Mark mark) {
  switch (mark) {
    case Mark::nan:
      return ImGui::GetColorU32(colour::vermillion);
    case Mark::pos_inf:
      return ImGui::GetColorU32(colour::pink);
    case Mark::neg_inf:
      return IM_COL32(255, 255, 255, 255);
    case Mark::spike:
      return ImGui::GetColorU32(colour::orange);
    case Mark::scale_overflow:
    case Mark::failed:
      return ImGui::GetColorU32(colour::muted);
    case Mark::verified:
      return ImGui::GetColorU32(colour::green);
    case Mark::finite:
      break;
  }
  return ImGui::GetColorU32(colour::sky);
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

ImU32 viridis(double t) {
  const float clean = t >= 0 ? static_cast<float>(std::min(t, 1.0)) : 0.0f;
  return ImGui::ColorConvertFloat4ToU32(ImPlot::SampleColormap(clean, ImPlotColormap_Viridis));
}

ImVec4 series_colour(std::size_t i) {
  constexpr ImVec4 cycle[] = {colour::sky,    colour::orange, colour::green,
                              colour::yellow, colour::pink,   {0.75f, 0.78f, 0.82f, 1}};
  return cycle[i % 6];
}

void push_text_size(float factor) {
  ImGui::PushFont(nullptr, ImGui::GetStyle().FontSizeBase * factor);
}
void pop_text_size() {
  ImGui::PopFont();
}

float column_width(const std::string& widest, float least) {
  return std::max(ImGui::GetFontSize() * least, ImGui::CalcTextSize(widest.c_str()).x);
}

void clipped_text(const std::string& text, float width) {
  if (ImGui::CalcTextSize(text.c_str()).x <= width) {
    ImGui::TextUnformatted(text.c_str());
    return;
  }
  std::size_t low = 0, high = text.size();
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (ImGui::CalcTextSize((text.substr(0, middle) + "...").c_str()).x <= width)
      low = middle;
    else
      high = middle - 1;
  }
  ImGui::TextUnformatted((text.substr(0, low) + "...").c_str());
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", text.c_str());
}

void chip(const char* text, ImVec4 ground) {
  const float pad = ImGui::GetTextLineHeight() * 0.4f;
  const ImVec2 size = ImGui::CalcTextSize(text), at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + size.x + 2 * pad, at.y + size.y + pad},
                                            ImGui::GetColorU32(ground), 3);
  ImGui::GetWindowDrawList()->AddText({at.x + pad, at.y + pad * 0.5f}, IM_COL32(255, 255, 255, 255), text);
  ImGui::Dummy({size.x + 2 * pad, size.y + pad});
}

ImVec4 cause_colour(Label cause) {
  return cause == Label::unknown ? ImVec4{0.35f, 0.38f, 0.42f, 1} : colour::vermillion;
}

bool lit_button(const char* label, bool lit, bool small) {
  if (lit) ImGui::PushStyleColor(ImGuiCol_Button, with_alpha(colour::sky, 0.45f));
  const bool clicked = small ? ImGui::SmallButton(label) : ImGui::Button(label);
  if (lit) ImGui::PopStyleColor();
  return clicked;
}

void heading(const char* text) {
  ImGui::Dummy({0, ImGui::GetTextLineHeight() * 0.35f});
  ImGui::PushStyleColor(ImGuiCol_Text, colour::sky);
  ImGui::TextUnformatted(text);
  ImGui::PopStyleColor();
  ImGui::Separator();
}

}  // namespace nanquest::viewer
