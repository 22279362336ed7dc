#include "viewer/ui/run_lines.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "viewer/model/comparison.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

constexpr float kEven[] = {0.4f, 0.4f}, kDots[] = {0.12f, 0.28f}, kDashDot[] = {0.7f, 0.25f, 0.12f, 0.25f},
                kLong[] = {1.2f, 0.35f}, kDashDots[] = {0.7f, 0.2f, 0.12f, 0.2f, 0.12f, 0.2f};
constexpr Dashes kStyles[] = {{}, kEven, kDots, kDashDot, kLong, kDashDots};
constexpr std::size_t kColours = 6;  // of series_colour

/// Where a run's letter stands: on the nearest row with a value that can be drawn; nothing if there is none
/// within a tenth of the plot.
std::optional<ImVec2> place_of_letter(const RunCurve& curve, const StepRange& steps, std::size_t runs) {
  const History& history = *curve.history;
  if (history.empty()) return std::nullopt;
  const auto [first, end] = steps.rows(history);
  const double share = (static_cast<double>(curve.run) + 0.5) / static_cast<double>(runs);
  const double low = std::max(steps.first, history.steps().front()),
               high = std::min(steps.last, history.steps().back());
  if (first >= end || low >= high) return std::nullopt;
  const std::size_t wanted = history.row_of(low + (high - low) * share), reach = 1 + (end - first) / 10;
  for (std::size_t away = 0; away < reach; ++away)
    for (const std::size_t row : {wanted + away, wanted - away})
      if (row >= first && row < end && std::isfinite(curve.shown()[row])) {
        const ImVec2 at = ImPlot::PlotToPixels(history.steps()[row], curve.shown()[row]);
        if (std::isfinite(at.x) && std::isfinite(at.y)) return at;
      }
  return std::nullopt;
}

}  // namespace

const Dashes kDashes = kEven;

LineStyle style_of_run(std::size_t run) {
  return {series_colour(run), kStyles[(run + run / kColours) % std::size(kStyles)]};
}

float draw_dashed_line(ImDrawList& list, ImVec2 from, ImVec2 to, Dashes dashes, ImU32 ink, float walked) {
  constexpr float weight = 1.6f;
  const float length = std::hypot(to.x - from.x, to.y - from.y), em = ImGui::GetFontSize();
  // One far outside the plot would be cut into dashes that can't be seen.
  if (!std::isfinite(length) || length > 1e5f) return walked;
  if (dashes.empty()) {
    list.AddLine(from, to, ink, weight);
    return 0;
  }
  float period = 0;
  for (const float dash : dashes) period += dash * em;
  walked = std::fmod(walked, period);
  for (float at = 0; at < length;) {
    std::size_t part = 0;
    float end = dashes[0] * em;
    while (part + 1 < dashes.size() && walked >= end) end += dashes[++part] * em;
    const float piece = std::min(length - at, std::max(end - walked, 0.01f));
    const float a = at / length, b = (at + piece) / length;
    if (part % 2 == 0)
      list.AddLine({from.x + (to.x - from.x) * a, from.y + (to.y - from.y) * a},
                   {from.x + (to.x - from.x) * b, from.y + (to.y - from.y) * b}, ink, weight);
    at += piece;
    walked += piece;
    if (walked >= period) walked = 0;
  }
  return walked;
}

void draw_dashes(const Curve& stretch, Dashes dashes, ImU32 ink) {
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  float walked = 0;
  for (std::size_t i = 0; i + 1 < stretch.x.size(); ++i)
    walked = draw_dashed_line(list, ImPlot::PlotToPixels(stretch.x[i], stretch.y[i]),
                              ImPlot::PlotToPixels(stretch.x[i + 1], stretch.y[i + 1]), dashes, ink, walked);
}

void draw_letter(ImDrawList& list, ImVec2 centre, std::size_t run) {
  const float em = ImGui::GetFontSize();
  const std::string letter = letter_of_run(run);
  const ImVec2 size = ImGui::CalcTextSize(letter.c_str());
  list.AddCircleFilled(centre, em * 0.55f, ImGui::GetColorU32(colour().plot));
  list.AddCircle(centre, em * 0.55f, ImGui::GetColorU32(style_of_run(run).ink), 0, 1.5f);
  list.AddText({centre.x - size.x / 2, centre.y - size.y / 2}, ImGui::GetColorU32(colour().text),
               letter.c_str());
}

void draw_unsmoothed(const RunCurve& curve, const StepRange& steps, double foot, ImVec4 ink) {
  if (curve.smooth == nullptr) return;
  const auto [first, end] = steps.rows(*curve.history);
  for (const Curve& run :
       finite_runs(*curve.history, *curve.values, first, end, foot, ImPlot::GetPlotSize().x))
    draw_dashes(run, {}, faint(ink, 0.25f));
}

void draw_run_curve(const RunCurve& curve, const StepRange& steps, double foot, std::size_t runs) {
  const LineStyle style = style_of_run(curve.run);
  draw_unsmoothed(curve, steps, foot, style.ink);
  const auto [first, end] = steps.rows(*curve.history);
  for (const Curve& run :
       finite_runs(*curve.history, curve.shown(), first, end, foot, ImPlot::GetPlotSize().x))
    draw_dashes(run, style.dashes, ImGui::GetColorU32(style.ink));
  if (auto at = place_of_letter(curve, steps, runs)) {
    const float top = ImPlot::GetPlotPos().y, bottom = top + ImPlot::GetPlotSize().y;
    const float half = std::min(ImGui::GetFontSize() * 0.65f, (bottom - top) / 2);
    // At the edge a letter would be cut; further away there is no curve to be named.
    if (at->y > top - half && at->y < bottom + half) {
      at->y = std::clamp(at->y, top + half, bottom - half);
      draw_letter(*ImPlot::GetPlotDrawList(), *at, curve.run);
    }
  }
}

}  // namespace nanquest::viewer
