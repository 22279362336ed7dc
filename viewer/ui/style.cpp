#include "viewer/ui/style.h"

#include <algorithm>

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

ImU32 viridis(double t) {
  const float clean = t >= 0 ? static_cast<float>(std::min(t, 1.0)) : 0.0f;
  return ImGui::ColorConvertFloat4ToU32(ImPlot::SampleColormap(clean, ImPlotColormap_Viridis));
}

ImVec4 series_colour(std::size_t i) {
  constexpr ImVec4 cycle[] = {colour::sky,    colour::orange, colour::green,
                              colour::yellow, colour::pink,   {0.75f, 0.78f, 0.82f, 1}};
  return cycle[i % 6];
}

}  // namespace nanquest::viewer
