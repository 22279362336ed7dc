/// Themes: the colours of the viewer, safe for colour-blind people: Okabe and Ito (2008) and similar colours
/// on a light ground, viridis for amounts. Every meaning has a shape as well (marks.h).
///
/// Text has a contrast of 4.5 to 1 on all grounds that it is drawn on, marks 3 to 1, and the mark of NaN
/// differs from all others in grey and for three kinds of colour blindness (tests/viewer/theme_test.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "imgui.h"

namespace nanquest::viewer {

enum class Theme : std::uint8_t { dark, light, high_contrast };
inline constexpr Theme kThemes[] = {Theme::dark, Theme::light, Theme::high_contrast};

/// "dark", "light", "high-contrast".
const char* theme_name(Theme theme);
/// The one of that name; nothing for any other.
std::optional<Theme> theme_from_name(std::string_view name);

/// Every colour that has a meaning.
struct Palette {
  ImVec4 orange, sky, green, yellow, vermillion, pink;  ///< vermillion: NaN; sky: links, what is chosen; …
  ImVec4 text, muted, strong;                           ///< strong: what is selected, and -Inf
  ImVec4 ground, raised, plot, border, line;
  ImVec4 button, hovered, chip, grey_chip;  ///< text on a chip is `on_chip`
  ImVec4 on_chip, on_mark;                  ///< on_mark: a shape on a cell of its own colour
};

/// The current palette. Main thread only, like all of Dear ImGui.
const Palette& colour();
/// Applies a theme, in the current contexts of Dear ImGui and ImPlot too; sizes stay.
void set_theme(Theme theme);
Theme current_theme();

}  // namespace nanquest::viewer
