// The tensor's values in other formats, at another loss scale.
#include <algorithm>
#include <string>

#include "viewer/model/numbers.h"
#include "viewer/panels/tensor/parts.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

void scale_choice(Session& session) {
  WhatIf what = session.selection().what_if;
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted("Values times 2^");
  ImGui::SameLine(0, 2);
  ImGui::SetNextItemWidth(ImGui::GetFontSize() * 6.5f);
  if (ImGui::InputInt("##scale", &what.scale, 1, 8)) session.select_what_if(scaled(what, 0));
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("A loss scale to try (comma halves it, full stop doubles it)");
}

void format_row(Session& session, const TensorDetail& d, Format format) {
  const WhatIf what = session.selection().what_if;
  const Fit fit = d.fits->in(format, what.scale);
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const std::string name(info(format).name);
  if (ImGui::Selectable(name.c_str(), what.format == format, ImGuiSelectableFlags_SpanAllColumns))
    session.select_what_if({format, what.scale});
  ImGui::TableNextColumn();
  if (fit.overflow) inline_mark(Mark::pos_inf);
  ImGui::TextUnformatted(percent_text(fit.overflow, d.scan.count).c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(percent_text(fit.flushed, d.scan.count).c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(percent_text(fit.subnormal, d.scan.count).c_str());
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(harmless_text(*d.fits, format).c_str());
}

}  // namespace

void draw_formats(UiState& state, const TensorDetail& d) {
  if (!d.fits) return;
  scale_choice(state.session);
  if (ImGui::BeginTable("fits", 5, ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp)) {
    for (const char* name : {"In format", "overflows", "becomes 0", "subnormal", "harmless scales"})
      ImGui::TableSetupColumn(name);
    ImGui::TableHeadersRow();
    for (const Format format : kFitFormats) format_row(state.session, d, format);
    ImGui::EndTable();
  }
  ImGui::TextWrapped("%s",
                     what_if_text(*d.fits, state.session.selection().what_if, d.scan.non_finite()).c_str());
}

}  // namespace nanquest::viewer
