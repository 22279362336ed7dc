#include "viewer/ui/widgets.h"

#include <algorithm>
#include <cstddef>

#include "viewer/ui/style.h"

namespace nanquest::viewer {

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

std::string cut_in_front(const std::string& text, float width) {
  if (ImGui::CalcTextSize(text.c_str()).x <= width) return text;
  std::size_t low = 0, high = text.size();  // characters that are left out
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (ImGui::CalcTextSize(("..." + text.substr(middle)).c_str()).x <= width)
      high = middle;
    else
      low = middle + 1;
  }
  while (high < text.size() && (static_cast<unsigned char>(text[high]) & 0xc0u) == 0x80u) ++high;
  return "..." + text.substr(high);
}

void clipped_path(const std::string& text, float width) {
  const std::string shown = cut_in_front(text, width);
  ImGui::TextUnformatted(shown.c_str());
  if (shown != text && ImGui::IsItemHovered()) ImGui::SetTooltip("%s", text.c_str());
}

void chip(const char* text, ImVec4 ground) {
  const float pad = ImGui::GetTextLineHeight() * 0.4f;
  const ImVec2 size = ImGui::CalcTextSize(text), at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + size.x + 2 * pad, at.y + size.y + pad},
                                            ImGui::GetColorU32(ground), 3);
  ImGui::GetWindowDrawList()->AddText({at.x + pad, at.y + pad * 0.5f}, ImGui::GetColorU32(colour().on_chip),
                                      text);
  ImGui::Dummy({size.x + 2 * pad, size.y + pad});
}

ImVec4 cause_colour(Label cause) {
  return cause == Label::unknown ? colour().grey_chip : colour().chip;
}

bool lit_button(const char* label, bool lit, bool small) {
  if (lit)
    ImGui::PushStyleColor(ImGuiCol_Button, ImVec4(colour().sky.x, colour().sky.y, colour().sky.z, 0.45f));
  const bool clicked = small ? ImGui::SmallButton(label) : ImGui::Button(label);
  if (lit) ImGui::PopStyleColor();
  return clicked;
}

void heading(const char* text) {
  ImGui::Dummy({0, ImGui::GetTextLineHeight() * 0.35f});
  ImGui::PushStyleColor(ImGuiCol_Text, colour().sky);
  ImGui::TextUnformatted(text);
  ImGui::PopStyleColor();
  ImGui::Separator();
}

}  // namespace nanquest::viewer
