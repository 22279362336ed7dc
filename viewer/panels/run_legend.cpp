#include "viewer/panels/run_legend.h"

#include <algorithm>
#include <string>

#include "viewer/model/smoothing.h"
#include "viewer/ui/run_lines.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// Goes on in this line if `width` pixels are left, otherwise in the next.
void go_on(float width) {
  ImGui::SameLine(0, ImGui::GetFontSize());
  if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
}

void legend_entry(const UiState& state, std::size_t run, const std::string& name, const std::string& path) {
  const float em = ImGui::GetFontSize(), line = em * 3.6f, height = ImGui::GetFrameHeight();
  const float most = std::max(em * 8, ImGui::GetWindowWidth() - line - em * 4);
  const std::string shown = cut_in_front(name, most);
  const float width = line + em * 0.4f + ImGui::CalcTextSize(shown.c_str()).x;
  if (run > 0) go_on(width);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton(("run " + name).c_str(), {width, height});
  if (ImGui::IsItemHovered() && !state.options.still) ImGui::SetTooltip("%s", path.c_str());
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const LineStyle style = style_of_run(run);
  const float y = at.y + height / 2;
  draw_dashed_line(list, {at.x, y}, {at.x + line, y}, style.dashes, ImGui::GetColorU32(style.ink));
  draw_letter(list, {at.x + line / 2, y}, run);
  list.AddText({at.x + line + em * 0.4f, y - ImGui::GetTextLineHeight() / 2},
               ImGui::GetColorU32(ImGuiCol_Text), shown.c_str());
}

}  // namespace

void draw_run_legend(UiState& state) {
  Session& session = state.session;
  const Comparison* comparison = session.comparison();
  const double weight = session.selection().smoothing;
  if (comparison == nullptr && weight <= 0) return;
  const float em = ImGui::GetFontSize(), slider = em * 10;
  if (comparison != nullptr) {
    for (std::size_t i = 0; i < comparison->runs.size(); ++i)
      legend_entry(state, i, comparison->runs[i], i == 0 ? session.path() : session.others()[i - 1]->path());
    go_on(slider);
  }
  auto chosen = static_cast<float>(weight);
  ImGui::SetNextItemWidth(slider);
  if (ImGui::SliderFloat("##smoothing", &chosen, 0, static_cast<float>(kMostSmoothing), "smoothing %.3g",
                         ImGuiSliderFlags_AlwaysClamp))
    session.select_smoothing(chosen);
  if (ImGui::IsItemHovered() && !state.options.still)
    ImGui::SetTooltip("%s", (weight > 0 ? smoothing_text(weight) + "; the values themselves are faint"
                                        : std::string("curves are not smoothed"))
                                .c_str());
  if (weight <= 0) return;
  const std::string says = smoothing_text(weight);
  go_on(ImGui::CalcTextSize(says.c_str()).x);
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("%s", says.c_str());
}

void add_smoothing(UiState& state, std::vector<Action>& out) {
  const double now = state.session.selection().smoothing;
  const auto add = [&](const char* name, double weight) {
    if (weight != now)
      out.push_back({"View", name, 0, [&state, weight] { state.session.select_smoothing(weight); }});
  };
  add("Smooth curves more", smoothing_after(now, 1));
  add("Smooth curves less", smoothing_after(now, -1));
  if (now > 0) add("Do not smooth curves", 0);
}

}  // namespace nanquest::viewer
