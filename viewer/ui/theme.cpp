#include "viewer/ui/theme.h"

#include "implot.h"

namespace nanquest::viewer {
namespace {

constexpr Palette kDark = {
    .orange = {0.902f, 0.624f, 0.000f, 1},
    .sky = {0.337f, 0.706f, 0.914f, 1},
    .green = {0.000f, 0.620f, 0.451f, 1},
    .yellow = {0.941f, 0.894f, 0.259f, 1},
    .vermillion = {0.835f, 0.369f, 0.000f, 1},
    .pink = {0.800f, 0.475f, 0.655f, 1},
    .text = {0.906f, 0.918f, 0.933f, 1},
    .muted = {0.620f, 0.655f, 0.698f, 1},
    .strong = {1, 1, 1, 1},
    .ground = {0.078f, 0.090f, 0.110f, 1},
    .raised = {0.118f, 0.137f, 0.165f, 1},
    .plot = {0.055f, 0.063f, 0.078f, 1},
    .border = {0.20f, 0.23f, 0.27f, 1},
    .line = {0.16f, 0.18f, 0.21f, 1},
    .button = {0.16f, 0.19f, 0.23f, 1},
    .hovered = {0.17f, 0.20f, 0.24f, 1},
    .chip = {0.70f, 0.29f, 0.00f, 1},
    .grey_chip = {0.35f, 0.38f, 0.42f, 1},
    .on_chip = {1, 1, 1, 1},
    .on_mark = {0.08f, 0.08f, 0.08f, 1},
};

constexpr Palette kLight = {
    .orange = {0.56f, 0.38f, 0.00f, 1},
    .sky = {0.00f, 0.40f, 0.64f, 1},
    .green = {0.00f, 0.45f, 0.32f, 1},
    .yellow = {0.45f, 0.42f, 0.00f, 1},
    .vermillion = {0.52f, 0.03f, 0.03f, 1},
    .pink = {0.70f, 0.30f, 0.52f, 1},
    .text = {0.10f, 0.11f, 0.13f, 1},
    .muted = {0.34f, 0.37f, 0.41f, 1},
    .strong = {0.05f, 0.06f, 0.07f, 1},
    .ground = {0.975f, 0.978f, 0.985f, 1},
    .raised = {0.930f, 0.937f, 0.950f, 1},
    .plot = {1, 1, 1, 1},
    .border = {0.72f, 0.74f, 0.78f, 1},
    .line = {0.84f, 0.86f, 0.89f, 1},
    .button = {0.86f, 0.88f, 0.91f, 1},
    .hovered = {0.88f, 0.90f, 0.93f, 1},
    .chip = {0.64f, 0.25f, 0.00f, 1},
    .grey_chip = {0.35f, 0.38f, 0.42f, 1},
    .on_chip = {1, 1, 1, 1},
    .on_mark = {1, 1, 1, 1},
};

constexpr Palette kHighContrast = {
    .orange = {1.00f, 0.80f, 0.00f, 1},
    .sky = {0.45f, 0.83f, 1.00f, 1},
    .green = {0.20f, 0.90f, 0.60f, 1},
    .yellow = {1.00f, 0.95f, 0.30f, 1},
    .vermillion = {1.00f, 0.35f, 0.10f, 1},
    .pink = {1.00f, 0.62f, 0.85f, 1},
    .text = {1, 1, 1, 1},
    .muted = {0.80f, 0.82f, 0.85f, 1},
    .strong = {1, 1, 1, 1},
    .ground = {0, 0, 0, 1},
    .raised = {0.09f, 0.09f, 0.09f, 1},
    .plot = {0, 0, 0, 1},
    .border = {0.70f, 0.70f, 0.70f, 1},
    .line = {0.50f, 0.50f, 0.50f, 1},
    .button = {0.16f, 0.16f, 0.16f, 1},
    .hovered = {0.22f, 0.22f, 0.22f, 1},
    .chip = {0.60f, 0.20f, 0.00f, 1},
    .grey_chip = {0.30f, 0.30f, 0.30f, 1},
    .on_chip = {1, 1, 1, 1},
    .on_mark = {0, 0, 0, 1},
};

constexpr const char* kNames[] = {"dark", "light", "high-contrast"};
Theme in_force = Theme::dark;

ImVec4 with_alpha(ImVec4 c, float alpha) {
  return {c.x, c.y, c.z, alpha};
}

void colour_widgets(const Palette& p, ImVec4* c) {
  c[ImGuiCol_Text] = p.text;
  c[ImGuiCol_TextDisabled] = p.muted;
  c[ImGuiCol_WindowBg] = c[ImGuiCol_ChildBg] = p.ground;
  c[ImGuiCol_PopupBg] = c[ImGuiCol_MenuBarBg] = p.raised;
  c[ImGuiCol_Border] = p.border;
  c[ImGuiCol_FrameBg] = p.raised;
  c[ImGuiCol_FrameBgHovered] = p.hovered;
  c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = c[ImGuiCol_TitleBgCollapsed] = p.plot;
  c[ImGuiCol_Button] = p.button;
  c[ImGuiCol_ButtonHovered] = with_alpha(p.sky, 0.35f);
  c[ImGuiCol_ButtonActive] = with_alpha(p.sky, 0.55f);
  c[ImGuiCol_Header] = with_alpha(p.sky, 0.22f);
  c[ImGuiCol_HeaderHovered] = with_alpha(p.sky, 0.32f);
  c[ImGuiCol_HeaderActive] = with_alpha(p.sky, 0.42f);
  c[ImGuiCol_TabHovered] = with_alpha(p.sky, 0.35f);
  c[ImGuiCol_CheckMark] = p.sky;
  c[ImGuiCol_TableHeaderBg] = {(p.ground.x + p.raised.x) / 2, (p.ground.y + p.raised.y) / 2,
                               (p.ground.z + p.raised.z) / 2, 1};
  c[ImGuiCol_TableRowBgAlt] = with_alpha(p.strong, 0.02f);
  c[ImGuiCol_TableBorderLight] = p.line;
  c[ImGuiCol_NavCursor] = c[ImGuiCol_TextLink] = p.sky;
}

void colour_plots(const Palette& p, Theme theme) {
  ImPlotStyle& plot = ImPlot::GetStyle();
  if (theme == Theme::light)
    ImPlot::StyleColorsLight(&plot);
  else
    ImPlot::StyleColorsDark(&plot);
  plot.Colors[ImPlotCol_FrameBg] = {0, 0, 0, 0};
  plot.Colors[ImPlotCol_PlotBg] = p.plot;
  plot.Colors[ImPlotCol_PlotBorder] = p.border;
  plot.Colors[ImPlotCol_AxisText] = p.muted;
  plot.Colors[ImPlotCol_AxisGrid] = with_alpha(p.strong, 0.10f);
  plot.Colors[ImPlotCol_LegendBg] = with_alpha(p.ground, 0.9f);
  if (theme != Theme::dark) plot.Colors[ImPlotCol_LegendText] = plot.Colors[ImPlotCol_TitleText] = p.text;
}

}  // namespace

const char* theme_name(Theme theme) {
  return kNames[static_cast<int>(theme)];
}

std::optional<Theme> theme_from_name(std::string_view name) {
  for (const Theme theme : kThemes)
    if (name == theme_name(theme)) return theme;
  return std::nullopt;
}

const Palette& colour() {
  return in_force == Theme::light ? kLight : in_force == Theme::high_contrast ? kHighContrast : kDark;
}

Theme current_theme() {
  return in_force;
}

void set_theme(Theme theme) {
  in_force = theme;
  ImGuiStyle& style = ImGui::GetStyle();
  if (theme == Theme::light)
    ImGui::StyleColorsLight(&style);
  else
    ImGui::StyleColorsDark(&style);
  colour_widgets(colour(), style.Colors);
  colour_plots(colour(), theme);
}

}  // namespace nanquest::viewer
