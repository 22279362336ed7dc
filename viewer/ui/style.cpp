#include "viewer/ui/style.h"

#include <algorithm>
#include <iterator>

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
  // The atlas only reads this memory; its interface is not const.
  fonts.AddFontFromMemoryTTF(const_cast<unsigned char*>(nanquest_embedded_font),
                             static_cast<int>(nanquest_embedded_font_size), 16.0f, &config);
}

float base = 1;
int percent = 100;

/// All sizes; colours are set by set_theme.
void size_everything() {
  const float scale = base * static_cast<float>(percent) / 100;
  ImGuiStyle style;
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

  // With Ctrl ImPlot would ignore the mouse; here Ctrl zooms the values.
  ImPlot::GetInputMap().OverrideMod = ImGuiMod_Super;
  ImPlotStyle& plot = ImPlot::GetStyle();
  plot = ImPlotStyle();
  plot.PlotPadding = {4 * scale, 4 * scale};
  plot.MousePosPadding = {6 * scale, 6 * scale};
}

}  // namespace

void apply_style(float scale, Theme theme) {
  load_font();
  base = scale;
  percent = 100;
  size_everything();
  set_theme(theme);
}

void set_size(int wanted) {
  percent = std::clamp(wanted, kLeastSize, kMostSize);
  size_everything();
  set_theme(current_theme());
}

int current_size() {
  return percent;
}

int size_after(int now, int by) {
  constexpr int steps[] = {50, 67, 80, 90, 100, 110, 125, 150, 175, 200, 250, 300, 400};
  static_assert(steps[0] == kLeastSize && steps[std::size(steps) - 1] == kMostSize);
  if (by > 0) {
    const auto* const above = std::ranges::upper_bound(steps, now);
    return above == std::end(steps) ? kMostSize : *above;
  }
  const auto* const at = std::ranges::lower_bound(steps, now);
  return at == std::begin(steps) ? kLeastSize : *(at - 1);
}

ImU32 faint(ImVec4 ink, float alpha) {
  return ImGui::ColorConvertFloat4ToU32({ink.x, ink.y, ink.z, alpha});
}

ImU32 viridis(double t) {
  const float clean = t >= 0 ? static_cast<float>(std::min(t, 1.0)) : 0.0f;
  return ImGui::ColorConvertFloat4ToU32(ImPlot::SampleColormap(clean, ImPlotColormap_Viridis));
}

ImVec4 series_colour(std::size_t i) {
  const Palette& p = colour();
  const ImVec4 cycle[] = {p.sky, p.orange, p.green, p.yellow, p.pink, p.muted};
  return cycle[i % 6];
}

}  // namespace nanquest::viewer
