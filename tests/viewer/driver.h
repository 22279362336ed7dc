/// A person without a display: draws frames on no backend, finds items by their label, clicks, types, and
/// looks at what was drawn. Dear ImGui must not be misused meanwhile.
#pragma once

#include <gtest/gtest.h>

#include <cfloat>
#include <chrono>
#include <cmath>
#include <map>
#include <string>

#include "imgui.h"
#include "imgui_internal.h"
#include "implot.h"
#include "implot_internal.h"
#include "viewer/panels/frame.h"
#include "viewer/panels/norms/view.h"
#include "viewer/panels/trace/view.h"
#include "viewer/ui/hooks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer::testing {

class Driver {
 public:
  Driver(Session& session, Panel panel, float width = 1280, float height = 800, Loader* loader = nullptr)
      : context_(ImGui::CreateContext()), ui_(session, {panel}, loader) {
    ImPlot::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
#ifdef IMGUI_HAS_DOCK
    io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
#endif
    io.DisplaySize = {width, height};
    apply_style(1);
    set_item_observer([this](const ItemSeen& item) { items_[item.label] = item; });
  }
  ~Driver() {
    EXPECT_EQ(misuse_count(), misuse_before_) << first_misuse();
    set_item_observer(nullptr);
    ImPlot::DestroyContext();
    ImGui::DestroyContext(context_);
  }

  void frame(int count = 1) {
    for (int i = 0; i < count; ++i) {
      ImGui::GetIO().DeltaTime = 1.0f / 60;
      items_.clear();
      ImGui::NewFrame();
      ui_.draw();
      ImGui::Render();
      look();
    }
  }

  bool sees(const std::string& label) const {
    return items_.count(label) != 0;
  }

  /// What the last frame drew, by label.
  const std::map<std::string, ItemSeen>& items() const {
    return items_;
  }

  /// True if the window of that title is open, not behind a tab, and large enough to be of use.
  static bool shows(const char* title) {
    const ImGuiWindow* window = ImGui::FindWindowByName(title);
    return window != nullptr && window->Active && !window->Hidden && window->Size.x > 150 &&
           window->Size.y > 120;
  }

  /// Moves to the item's centre; false if no such item was drawn.
  bool point_at(const std::string& label) {
    const auto found = items_.find(label);
    if (found == items_.end()) return false;
    const ItemSeen item = found->second;
    ImGui::GetIO().AddMousePosEvent((item.x0 + item.x1) / 2, (item.y0 + item.y1) / 2);
    return true;
  }

  /// Moves to the item's centre, presses and releases; false if no such item was drawn.
  bool click(const std::string& label) {
    const auto found = items_.find(label);
    if (found == items_.end()) return false;
    const ItemSeen item = found->second;
    click_at({(item.x0 + item.x1) / 2, (item.y0 + item.y1) / 2});
    return true;
  }

  /// Moves there, presses, releases, and moves away.
  void click_at(ImVec2 place) {
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(place.x, place.y);
    frame(2);
    io.AddMouseButtonEvent(0, true);
    frame();
    io.AddMouseButtonEvent(0, false);
    frame(2);
    io.AddMousePosEvent(-FLT_MAX, -FLT_MAX);
    frame();
  }

  /// Frames until nothing is being read any more, at most a minute.
  void read(Loader& loader) {
    while (loader.busy()) {
      ASSERT_TRUE(loader.wait(std::chrono::minutes(1)));
      frame();
    }
  }

  void press(ImGuiKey key, ImGuiKey modifier = ImGuiKey_None) {
    ImGuiIO& io = ImGui::GetIO();
    if (modifier != ImGuiKey_None) io.AddKeyEvent(modifier, true);
    io.AddKeyEvent(key, true);
    frame();
    io.AddKeyEvent(key, false);
    if (modifier != ImGuiKey_None) io.AddKeyEvent(modifier, false);
    frame(2);
  }

  void type(const char* text) {
    ImGui::GetIO().AddInputCharactersUTF8(text);
    frame(3);
  }

  Ui& ui() {
    return ui_;
  }
  /// Vertices drawn so far that were not finite: a NaN that reached the picture.
  int bad_vertices() const {
    return bad_vertices_;
  }
  int vertices() const {
    return vertices_;
  }
  /// Square pixels of the last frame's triangles that are wholly of this colour; what overlaps counts twice.
  double area(ImU32 colour) const {
    const auto found = areas_.find(colour);
    return found == areas_.end() ? 0 : found->second;
  }
  /// Puts the mouse there and turns its wheel.
  void wheel(float x, float y, float by) {
    ImGui::GetIO().AddMousePosEvent(x, y);
    frame(2);
    ImGui::GetIO().AddMouseWheelEvent(0, by);
    frame(3);
  }
  /// Values at the ends of an axis of the newest plot whose y axis is logarithmic, or is not.
  static ImPlotRange shown(ImAxis axis, bool logarithmic) {
    ImPool<ImPlotPlot>& plots = ImPlot::GetCurrentContext()->Plots;
    for (int i = plots.GetBufSize() - 1; i >= 0; --i)
      if (const ImPlotPlot& plot = *plots.GetByIndex(i);
          (plot.Axes[ImAxis_Y1].Scale == ImPlotScale_Log10) == logarithmic)
        return plot.Axes[axis].Range;
    return {0, 0};
  }
  static ImPlotRange values_shown(bool logarithmic) {
    return shown(ImAxis_Y1, logarithmic);
  }
  /// Vertices of the last frame that have this colour.
  int coloured(ImU32 colour) const {
    const auto found = colours_.find(colour);
    return found == colours_.end() ? 0 : found->second;
  }

 private:
  void look() {
    vertices_ = 0;
    colours_.clear();
    areas_.clear();
    const ImDrawData& data = *ImGui::GetDrawData();
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
      if (texture->Status == ImTextureStatus_WantDestroy) {
        texture->SetTexID(ImTextureID_Invalid);
        texture->SetStatus(ImTextureStatus_Destroyed);
      } else if (texture->Status != ImTextureStatus_OK) {
        texture->SetTexID(1);
        texture->SetStatus(ImTextureStatus_OK);
      }
    }
    for (const ImDrawList* list : data.CmdLists)
      for (const ImDrawCmd& command : list->CmdBuffer)
        for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
          const auto corner = [&](unsigned k) -> const ImDrawVert& {
            return list->VtxBuffer[static_cast<int>(
                list->IdxBuffer[static_cast<int>(command.IdxOffset + i + k)] + command.VtxOffset)];
          };
          const ImDrawVert &a = corner(0), &b = corner(1), &c = corner(2);
          if (a.col == b.col && b.col == c.col)
            areas_[a.col] += 0.5 * std::abs((b.pos.x - a.pos.x) * (c.pos.y - a.pos.y) -
                                            (c.pos.x - a.pos.x) * (b.pos.y - a.pos.y));
        }
    for (const ImDrawList* list : data.CmdLists)
      for (const ImDrawVert& v : list->VtxBuffer) {
        ++vertices_;
        ++colours_[v.col];
        if (!std::isfinite(v.pos.x) || !std::isfinite(v.pos.y)) ++bad_vertices_;
      }
  }

  ImGuiContext* context_;
  Ui ui_;
  std::map<std::string, ItemSeen> items_;
  std::map<ImU32, int> colours_;
  std::map<ImU32, double> areas_;
  int bad_vertices_ = 0, vertices_ = 0, misuse_before_ = misuse_count();
};

/// What these panels remember.
inline NormsPanel& norms_of(Driver& driver) {
  return static_cast<NormsPanel&>(driver.ui().view(Panel::norms));
}
inline TracePanel& trace_of(Driver& driver) {
  return static_cast<TracePanel&>(driver.ui().view(Panel::trace));
}

}  // namespace nanquest::viewer::testing
