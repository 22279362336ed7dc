// Stores how a run is left, and restores it.
#include <string>

#include "imgui.h"
#include "imgui_internal.h"
#include "viewer/panels/frame.h"
#include "viewer/panels/layout.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {

Desk Ui::desk() {
  const Session& session = state_.session;
  Desk now = kept_;
  if (const RunFolder* folder = session.folder(); folder != nullptr) {
    now.together = folder_.chosen_names(*folder);
    return now;
  }
  now.layout = layout_->name;
  now.theme = theme_name(current_theme());
#ifdef IMGUI_HAS_DOCK
  if (layout_made_ && state_.options.panel == Panel::all) {
    now.front.clear();
    for (const Panel panel : panels_in_front()) now.front.emplace_back(panel_name(panel));
  }
#endif
  now.steps = state_.steps.chosen();
  now.shown = shown_incident(session);
  now.selection = session.selection();
  now.selection->incident = -1;
  now.notes = session.notes();
  return now;
}

/// A run that was never left keeps the theme and the panels as they are.
void Ui::resume(const Arrival& arrival) {
  kept_ = arrival.desk;
  if (const RunFolder* folder = state_.session.folder(); folder != nullptr) {
    // What was chosen since the window was opened stays, also where nothing can be stored.
    if (folder_.chosen_names(*folder).empty()) folder_.choose(*folder, kept_.together);
    return;
  }
  if (const auto theme = theme_from_name(kept_.theme);
      theme && *theme != current_theme() && !state_.options.own_theme) {
    set_theme(*theme);
    ImGui::MarkIniSettingsDirty();
  }
  const LayoutInfo* layout = layout_from_name(kept_.layout);
  if (state_.options.layout == nullptr && layout != nullptr && layout != layout_) show_layout(*layout);
  if (kept_.selection && !arrival.resumed) {
    const IncidentName& now = kept_.first;
    state_.message = now.step < 0 ? "It has changed since you left"
                                  : "Since you left there is something new: step " + std::to_string(now.step);
    return;
  }
  if (!kept_.selection) return;
  state_.message = "As you left it";
  if (kept_.steps) state_.steps.show(kept_.steps->first, kept_.steps->second);
  front_.clear();
  for (const std::string& name : kept_.front)
    if (const auto panel = panel_from_name(name); panel && *panel != Panel::all) front_.push_back(*panel);
}

}  // namespace nanquest::viewer
