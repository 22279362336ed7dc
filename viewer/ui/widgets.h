/// Widgets of the viewer besides those of Dear ImGui: sized and clipped text, chips, headings.
#pragma once

#include <string>

#include "imgui.h"
#include "replay/verdict/words.h"

namespace nanquest::viewer {

/// Text scaled by `factor` until pop_text_size().
void push_text_size(float factor);
void pop_text_size();
/// Pixels that a column of a table needs for this text; at least `least` ems.
float column_width(const std::string& widest, float least);
/// One line, cut with "…" to `width` pixels; hovering shows all of it.
void clipped_text(const std::string& text, float width);
/// The same, cut at the start: for a path or a module the end is what distinguishes it.
void clipped_path(const std::string& text, float width);
/// What `clipped_path` would show.
std::string cut_in_front(const std::string& text, float width);
/// A label on a coloured background.
void chip(const char* text, ImVec4 ground);
/// Background of a cause's chip: grey for UNKNOWN.
ImVec4 cause_colour(Label cause);
/// A button that stays lit while its choice is active; a small one has no padding above and below.
bool lit_button(const char* label, bool lit, bool small = false);
/// A heading inside a panel.
void heading(const char* text);

}  // namespace nanquest::viewer
