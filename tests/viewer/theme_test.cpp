// Themes: text is readable on every ground, and NaN is not mistaken for anything else, for all kinds of
// colour vision. Contrast by WCAG 2.2; colour blindness by Machado, Oliveira and Fernandes (2009) at full
// severity; distances by CIE 1976.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using Linear = std::array<double, 3>;

double linear(double c) {
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}
Linear linear(ImVec4 c) {
  return {linear(c.x), linear(c.y), linear(c.z)};
}
double luminance(const Linear& c) {
  return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}
double contrast(ImVec4 a, ImVec4 b) {
  const double x = luminance(linear(a)), y = luminance(linear(b));
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}
/// The visible colour over a ground.
ImVec4 over(ImVec4 c, ImVec4 ground) {
  const auto mix = [&](float a, float b) { return a * c.w + b * (1 - c.w); };
  return {mix(c.x, ground.x), mix(c.y, ground.y), mix(c.z, ground.z), 1};
}

std::array<double, 3> lab(const Linear& c) {
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * c[0] + 0.3576 * c[1] + 0.1805 * c[2]) / 0.9505), y = f(luminance(c)),
               z = f((0.0193 * c[0] + 0.1192 * c[1] + 0.9505 * c[2]) / 1.089);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}
double distance(const Linear& a, const Linear& b) {
  const auto p = lab(a), q = lab(b);
  return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

constexpr double kProtan[3][3] = {
    {0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}};
constexpr double kDeutan[3][3] = {
    {0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}};
constexpr double kTritan[3][3] = {
    {1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}};

Linear seen(const double (&m)[3][3], const Linear& c) {
  Linear out;
  for (std::size_t i = 0; i < 3; ++i)
    out[i] = std::clamp(m[i][0] * c[0] + m[i][1] * c[1] + m[i][2] * c[2], 0.0, 1.0);
  return out;
}
Linear grey(const Linear& c) {
  const double y = luminance(c);
  return {y, y, y};
}

class Themes : public testing::OpenStory, public ::testing::WithParamInterface<Theme> {
 protected:
  static ImVec4 style(ImGuiCol which) { return ImGui::GetStyle().Colors[which]; }
  static ImVec4 ink(Mark mark) { return ImGui::ColorConvertU32ToFloat4(mark_colour(mark)); }
};

TEST_P(Themes, TextStandsOut) {
  Driver driver(session(), Panel::verdict);
  set_theme(GetParam());
  const Palette& p = colour();
  const ImVec4 window = style(ImGuiCol_WindowBg), raised = style(ImGuiCol_PopupBg);
  const auto reads = [](const char* what, ImVec4 text, ImVec4 ground) {
    EXPECT_GE(contrast(text, ground), 4.5) << what;
  };
  for (const ImVec4 ground :
       {window, raised, style(ImGuiCol_TableHeaderBg), style(ImGuiCol_TitleBg), p.plot}) {
    reads("text", p.text, ground);
    reads("muted text", p.muted, ground);
    reads("what is selected", p.strong, ground);
  }
  for (const ImVec4 ground : {window, raised}) {
    reads("a link", style(ImGuiCol_TextLink), ground);
    reads("a warning", p.orange, ground);
  }
  for (const ImGuiCol on : {ImGuiCol_Button, ImGuiCol_ButtonHovered, ImGuiCol_ButtonActive, ImGuiCol_Header,
                            ImGuiCol_HeaderHovered, ImGuiCol_HeaderActive, ImGuiCol_FrameBg,
                            ImGuiCol_FrameBgHovered, ImGuiCol_Tab, ImGuiCol_TabHovered, ImGuiCol_TabSelected})
    reads(ImGui::GetStyleColorName(on), p.text, over(style(on), window));
  reads("a lit button", p.text, over({p.sky.x, p.sky.y, p.sky.z, 0.45f}, window));
  reads("a cause", p.on_chip, p.chip);
  reads("an unknown cause", p.on_chip, p.grey_chip);
  reads("numbers of an axis", ImPlot::GetStyle().Colors[ImPlotCol_AxisText], window);
  set_theme(Theme::dark);
}

TEST_P(Themes, NaNIsMistakenForNothing) {
  Driver driver(session(), Panel::verdict);
  set_theme(GetParam());
  const Linear nan = linear(ink(Mark::nan));
  EXPECT_GE(contrast(ink(Mark::nan), colour().plot), 3) << "it stands out from the ground";
  for (const Mark mark :
       {Mark::pos_inf, Mark::neg_inf, Mark::spike, Mark::scale_overflow, Mark::finite, Mark::verified}) {
    const Linear other = linear(ink(mark));
    const auto which = static_cast<int>(mark);
    EXPECT_GE(contrast(ink(mark), colour().plot), 3) << which;
    EXPECT_GE(distance(seen(kProtan, nan), seen(kProtan, other)), 15) << "without long waves " << which;
    EXPECT_GE(distance(seen(kDeutan, nan), seen(kDeutan, other)), 15) << "without middle waves " << which;
    EXPECT_GE(distance(seen(kTritan, nan), seen(kTritan, other)), 15) << "without short waves " << which;
    if (mark == Mark::verified) continue;  // no series holds it
    EXPECT_GE(distance(grey(nan), grey(other)), 6) << "in grey " << which;
  }
  set_theme(Theme::dark);
}

TEST_P(Themes, EveryPanelIsDrawnInIt) {
  Driver driver(session(), Panel::all, 1600, 1000);
  driver.frame(3);
  if (GetParam() != current_theme())
    for (const Action& action : driver.ui().actions())
      if (action.name == std::string("Theme ") + theme_name(GetParam())) action.run();
  EXPECT_EQ(current_theme(), GetParam());
  driver.frame(3);
  EXPECT_GT(driver.coloured(ImGui::GetColorU32(colour().text)), 400);
  EXPECT_GT(driver.coloured(mark_colour(Mark::nan)), 20);
  EXPECT_EQ(driver.bad_vertices(), 0);
  set_theme(Theme::dark);
}

INSTANTIATE_TEST_SUITE_P(All, Themes, ::testing::ValuesIn(kThemes), [](const auto& p) {
  std::string name = theme_name(p.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(ThemeNames, ReadAsTheyAreWritten) {
  for (const Theme theme : kThemes) EXPECT_EQ(theme_from_name(theme_name(theme)), theme);
  EXPECT_FALSE(theme_from_name("pink"));
}

}  // namespace
}  // namespace nanquest::viewer
