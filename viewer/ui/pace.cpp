#include "viewer/ui/pace.h"

#include "imgui.h"
#include "imgui_internal.h"

namespace nanquest::viewer {

bool input_waits() {
  if (ImGui::GetCurrentContext()->InputEventsQueue.Size > 0 || ImGui::IsAnyMouseDown()) return true;
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_NamedKey_END; ++key)
    if (ImGui::IsKeyDown(static_cast<ImGuiKey>(key))) return true;
  return false;
}

}  // namespace nanquest::viewer
