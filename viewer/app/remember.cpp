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
constexpr std::string_view kTheme = "Theme=", kSize = "Size=";

void* open_entry(ImGuiContext*, ImGuiSettingsHandler* handler, const char* name) {
  return std::string_view(name) == "viewer" ? handler : nullptr;
}

void read_line(ImGuiContext*, ImGuiSettingsHandler*, void*, const char* line) {
  const std::string_view text(line);
  if (text.starts_with(kSize)) {
    int size = 0;
    const std::string_view number = text.substr(kSize.size());
    if (std::from_chars(number.data(), number.data() + number.size(), size).ec == std::errc()) set_size(size);
  }
  if (!text.starts_with(kTheme)) return;
  if (const auto theme = theme_from_name(text.substr(kTheme.size()))) set_theme(*theme);
}

void write_all(ImGuiContext*, ImGuiSettingsHandler*, ImGuiTextBuffer* out) {
  out->appendf("[%s][viewer]\nTheme=%s\nSize=%d\n\n", kKind, theme_name(current_theme()), current_size());
}

}  // namespace

void remember_choices() {
  ImGuiSettingsHandler handler;
  handler.TypeName = kKind;
  handler.TypeHash = ImHashStr(kKind);
  handler.ReadOpenFn = open_entry;
  handler.ReadLineFn = read_line;
  handler.WriteAllFn = write_all;
  ImGui::AddSettingsHandler(&handler);
}

}  // namespace nanquest::viewer
