#include "viewer/app/remember.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "imgui.h"
#include "imgui_internal.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

constexpr const char* kKind = "nanquest";
constexpr std::string_view kTheme = "Theme=", kSize = "Size=", kLayout = "Layout=";

std::string& layout_of(const ImGuiSettingsHandler* handler) {
  return *static_cast<std::string*>(handler->UserData);
}

void* open_entry(ImGuiContext*, ImGuiSettingsHandler* handler, const char* name) {
  return std::string_view(name) == "viewer" ? handler : nullptr;
}

void read_line(ImGuiContext*, ImGuiSettingsHandler* handler, void*, const char* line) {
  const std::string_view text(line);
  if (text.starts_with(kSize)) {
    int size = 0;
    const std::string_view number = text.substr(kSize.size());
    if (std::from_chars(number.data(), number.data() + number.size(), size).ec == std::errc()) set_size(size);
  }
  if (text.starts_with(kLayout)) layout_of(handler) = text.substr(kLayout.size());
  if (!text.starts_with(kTheme)) return;
  if (const auto theme = theme_from_name(text.substr(kTheme.size()))) set_theme(*theme);
}

void write_all(ImGuiContext*, ImGuiSettingsHandler* handler, ImGuiTextBuffer* out) {
  out->appendf("[%s][viewer]\nTheme=%s\nSize=%d\nLayout=%s\n\n", kKind, theme_name(current_theme()),
               current_size(), layout_of(handler).c_str());
}

}  // namespace

void remember_choices(std::string& layout) {
  ImGuiSettingsHandler handler;
  handler.TypeName = kKind;
  handler.TypeHash = ImHashStr(kKind);
  handler.ReadOpenFn = open_entry;
  handler.ReadLineFn = read_line;
  handler.WriteAllFn = write_all;
  handler.UserData = &layout;
  ImGui::AddSettingsHandler(&handler);
}

}  // namespace nanquest::viewer
