#include "viewer/ui/hooks.h"

#include <unordered_map>
#include <utility>

#include "imgui.h"
#include "imgui_internal.h"

namespace {

std::function<void(const nanquest::viewer::ItemSeen&)> item_observer;
std::unordered_map<ImGuiID, ImRect> rectangles;  // of this frame's items, until their label comes
int misuses = 0;
std::string complaint;

}  // namespace

void nanquest_imgui_misuse(const char* expression, const char* file, int line) {
  if (misuses++ == 0) complaint = std::string(file) + ":" + std::to_string(line) + " " + expression;
}

// The four functions that imgui.cpp calls when compiled with IMGUI_ENABLE_TEST_ENGINE.
void ImGuiTestEngineHook_ItemAdd(ImGuiContext*, ImGuiID id, const ImRect& box, const ImGuiLastItemData*) {
  if (item_observer && id != 0) rectangles[id] = box;
}

void ImGuiTestEngineHook_ItemInfo(ImGuiContext*, ImGuiID id, const char* label, ImGuiItemStatusFlags) {
  if (!item_observer || label == nullptr || label[0] == '\0') return;
  const auto found = rectangles.find(id);
  if (found == rectangles.end()) return;
  const ImRect& r = found->second;
  item_observer({label, r.Min.x, r.Min.y, r.Max.x, r.Max.y});
}

void ImGuiTestEngineHook_Log(ImGuiContext*, const char*, ...) {}
const char* ImGuiTestEngine_FindItemDebugLabel(ImGuiContext*, ImGuiID) {
  return nullptr;
}

namespace nanquest::viewer {

void set_item_observer(std::function<void(const ItemSeen&)> observer) {
  item_observer = std::move(observer);
  rectangles.clear();
  if (ImGui::GetCurrentContext() != nullptr)
    ImGui::GetCurrentContext()->TestEngineHookItems = static_cast<bool>(item_observer);
}

int misuse_count() {
  return misuses;
}
const std::string& first_misuse() {
  return complaint;
}

}  // namespace nanquest::viewer
