#include "viewer/ui/pace.h"

#include "imgui.h"
#include "imgui_internal.h"

namespace nanquest::viewer {

bool input_waits() {
  return ImGui::GetCurrentContext()->InputEventsQueue.Size > 0;
}

}  // namespace nanquest::viewer
