#include "viewer/panels/registry.h"

#include <algorithm>

#include "viewer/panels/page_text.h"

namespace nanquest::viewer {

#define PANEL(name, title, place, needs)      \
  PanelPage page_of_##name(Session&, Extent); \
  Result<std::string> name##_csv(Session&);
#include "viewer/panels/list.inc"
#undef PANEL

namespace {

constexpr PanelInfo kPanels[] = {
#define PANEL(name, title, place, needs) \
  {Panel::name, #name, title, Place::place, Needs::needs, page_of_##name, name##_csv},
#include "viewer/panels/list.inc"
#undef PANEL
};

}  // namespace

const PanelInfo& info_of(Panel panel) {
  return kPanels[static_cast<std::size_t>(panel)];
}

std::span<const PanelInfo> all_panels() {
  return kPanels;
}

std::string_view panel_name(Panel panel) {
  return panel == Panel::all ? "all" : info_of(panel).name;
}

std::optional<Panel> panel_from_name(std::string_view name) {
  if (name == panel_name(Panel::all)) return Panel::all;
  const auto found = std::find_if(std::begin(kPanels), std::end(kPanels),
                                  [&](const PanelInfo& panel) { return panel.name == name; });
  return found == std::end(kPanels) ? std::nullopt : std::optional(found->panel);
}

std::string panel_choice(bool or_all) {
  std::string text;
  for (const PanelInfo& panel : kPanels) {
    const bool last = !or_all && &panel == std::end(kPanels) - 1;
    text.append(text.empty() ? "" : last ? " or " : ", ").append(panel.name);
  }
  return or_all ? text + " or all" : text;
}

Panel panel_of(Link::Kind kind) {
  switch (kind) {
    case Link::Kind::op:
      return Panel::trace;
    case Link::Kind::layer:
      return Panel::norms;
    case Link::Kind::step:
    case Link::Kind::place:
      return Panel::timeline;
    case Link::Kind::sample:
      return Panel::batch;
    case Link::Kind::tensor:
      break;
  }
  return Panel::tensor;
}

std::string panel_text(Session& session, Panel panel) {
  if (panel != Panel::all) return page_text(info_of(panel).page(session, Extent::glance));
  std::string all;
  for (const PanelInfo& each : kPanels) {
    if (!all.empty()) all += '\n';
    all.append("== ").append(each.name).append(" ==\n").append(page_text(each.page(session, Extent::glance)));
  }
  return all;
}

Result<std::string> panel_csv(Session& session, Panel panel) {
  if (panel != Panel::all) return info_of(panel).csv(session);
  return Error{ErrorCode::usage, "CSV holds one panel at a time", "choose " + panel_choice(false)};
}

}  // namespace nanquest::viewer
