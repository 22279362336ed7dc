#include "viewer/ui/curves.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "imgui_internal.h"
#include "viewer/model/numbers.h"
#include "viewer/model/ticks.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

/// Column `c` of `columns`: rows [first, second).
std::pair<std::size_t, std::size_t> rows_of(std::size_t first, std::size_t last, std::size_t c,
                                            std::size_t columns) {
  return {first + (last - first) * c / columns, first + (last - first) * (c + 1) / columns};
}

std::size_t column_count(std::size_t first, std::size_t last, float pixels) {
  return std::min<std::size_t>(last - first, static_cast<std::size_t>(std::max(1.0f, pixels)));
}

void setup_values(ShownValues& shown, std::uint64_t asked, double low, double high) {
  const bool changed = shown.low != low || shown.high != high;
  const bool fit = shown.asked != asked || (changed && !shown.own);
  if (fit) shown = {low, high, false, asked};
  ImPlot::SetupAxisLimits(ImAxis_Y1, low, high, fit ? ImPlotCond_Always : ImPlotCond_Once);
}

/// Detects that the user has zoomed or panned the values.
void note_values(ShownValues& shown) {
  const ImPlotRange now = ImPlot::GetPlotLimits().Y;
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
  shown.seen = now;
  shown.own = !same(now.Min, shown.low) || !same(now.Max, shown.high);
}

/// The top of the axis, so that values end below `free`.
double top_of(const CurveAxes& axes) {
  if (axes.free <= 0 || axes.height <= axes.free * 2) return axes.high;
  const double more = static_cast<double>(axes.free) / static_cast<double>(axes.height - axes.free);
  return axes.logarithmic ? axes.high * std::pow(axes.high / axes.low, more)
                          : axes.high + (axes.high - axes.low) * more;
}

/// Names values where the plot's own decades are too few, or its own numbers would cover each other.
void name_values(const CurveAxes& axes, const ShownValues& shown, double top) {
  constexpr float kOwnNumbersFit = 6;  // lines of text
  const bool known = shown.seen.Max > shown.seen.Min && (shown.seen.Min > 0 || !axes.logarithmic);
  const double from = known ? shown.seen.Min : axes.low, to = known ? shown.seen.Max : top;
  const float lines = axes.height / (ImGui::GetFontSize() * 1.3f);
  const std::size_t most = axes.height > 0 ? static_cast<std::size_t>(std::max(2.0f, lines)) : 6;
  if (!axes.logarithmic && (axes.height <= 0 || lines >= kOwnNumbersFit)) return;
  const std::vector<double> ticks =
      axes.logarithmic ? log_ticks(from, to, most) : linear_ticks(from, to, most);
  if (ticks.empty()) return;
  std::vector<std::string> names;
  std::vector<const char*> labels;
  names.reserve(ticks.size());
  labels.reserve(ticks.size());
  for (const double tick : ticks) names.push_back(exact_number(tick));
  for (const std::string& name : names) labels.push_back(name.c_str());
  ImPlot::SetupAxisTicks(ImAxis_Y1, ticks.data(), static_cast<int>(ticks.size()), labels.data());
}

}  // namespace

bool begin_plots_of_steps() {
  // The same group in every window.
  ImGui::PushOverrideID(ImHashStr("plots of steps"));
  const bool begun = ImPlot::BeginAlignedPlots("steps");
  ImGui::PopID();
  return begun;
}

void end_plots_of_steps(bool begun) {
  if (begun) ImPlot::EndAlignedPlots();
}

float beside_steps() {
  return ImGui::GetFontSize() * 4.6f;
}

float width_of_steps() {
  const float bar = ImGui::GetCurrentWindow()->ScrollbarY ? ImGui::GetStyle().ScrollbarSize : 0;
  return ImGui::GetContentRegionAvail().x - beside_steps() + bar;
}

LockedAxes locked_axes() {
  const ImGuiIO& io = ImGui::GetIO();
  constexpr LockedAxes no_values{0, ImPlotAxisFlags_Lock}, no_steps{ImPlotAxisFlags_Lock, 0};
  if (io.KeyCtrl) return no_steps;
  if (!io.MouseDown[ImGuiMouseButton_Right] && !io.MouseReleased[ImGuiMouseButton_Right]) return no_values;
  const ImVec2 from = io.MouseClickedPos[ImGuiMouseButton_Right];
  const float wide = std::abs(io.MousePos.x - from.x), high = std::abs(io.MousePos.y - from.y);
  const float least = ImGui::GetFontSize() * 1.2f;
  if (high < least) return no_values;
  return wide < least ? no_steps : LockedAxes{};
}

bool box_ended() {
  return ImGui::IsMouseReleased(ImGuiMouseButton_Right) &&
         ImGui::GetIO().MouseDragMaxDistanceSqr[ImGuiMouseButton_Right] > 16;
}

void add_to_runs(std::vector<Curve>& runs, const Extremes& stretch, double first, double last, double foot) {
  if (stretch.has_finite()) {
    runs.back().x.push_back(first);
    runs.back().y.push_back(std::max(stretch.min, foot));
    if (stretch.max > stretch.min) {
      runs.back().x.push_back(last);
      runs.back().y.push_back(std::max(stretch.max, foot));
    }
  }
  if (stretch.non_finite() > 0 && !runs.back().x.empty()) runs.emplace_back();
}

std::vector<Curve> finite_runs(const History& history, const Pyramid& series, std::size_t first,
                               std::size_t last, double foot, float pixels) {
  std::vector<Curve> runs(1);
  const std::size_t columns = column_count(first, last, pixels);
  const std::vector<double>& steps = history.steps();
  const double usual = history.empty() ? 0 : history.end_of(history.rows()) - steps.back();
  for (std::size_t c = 0; c < columns; ++c) {
    auto [a, b] = rows_of(first, last, c, columns);
    const bool whole = steps[b - 1] - steps[a] <= usual * static_cast<double>(b - 1 - a);
    for (std::size_t row = a; row < b; row = whole ? b : row + 1) {
      // Nothing is known of steps that were not recorded: no line is drawn across them.
      if (row == first || history.end_of(row) >= steps[row]) continue;
      if (row > a) add_to_runs(runs, series.query(a, row), steps[a], steps[row - 1], foot);
      if (!runs.back().x.empty()) runs.emplace_back();
      a = row;
    }
    add_to_runs(runs, series.query(a, b), steps[a], steps[b - 1], foot);
  }
  return runs;
}

void draw_bad_lane(const History& history, const Pyramid& series, std::size_t first, std::size_t last,
                   float lane) {
  const ImVec2 origin = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const std::size_t columns = column_count(first, last, size.x);
  const float r = ImGui::GetFontSize() * 0.27f;
  for (std::size_t c = 0; c < columns; ++c) {
    const auto [a, b] = rows_of(first, last, c, columns);
    const Extremes e = series.query(a, b);
    if (e.non_finite() == 0) continue;
    std::size_t row = a;
    while (row + 1 < b && std::isfinite(series[row])) ++row;
    const float x = ImPlot::PlotToPixels(history.steps()[row], 1).x;
    draw_mark(*ImPlot::GetPlotDrawList(), {x, origin.y + lane}, r, worst(e));
  }
}

void draw_selected_step(double selected) {
  if (selected < 0) return;
  const ImVec2 origin = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const float x = ImPlot::PlotToPixels(selected, 1).x;
  ImPlot::GetPlotDrawList()->AddLine({x, origin.y}, {x, origin.y + size.y}, faint(colour().strong, 0.59f),
                                     1.5f);
}

void draw_events(const History& history, double selected) {
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const float y = ImPlot::GetPlotPos().y, r = ImGui::GetFontSize() * 0.28f;
  ImPlot::PushPlotClipRect();
  draw_selected_step(selected);
  // One mark where several would cover each other, that of the worst: a long run has thousands of events.
  const std::vector<GateEvent>& events = history.events();
  const ImVec2 plot = ImPlot::GetPlotPos();
  const float right = plot.x + ImPlot::GetPlotSize().x + r * 2;
  for (std::size_t i = 0; i < events.size();) {
    const float x = ImPlot::PlotToPixels(events[i].step, 1).x;
    Gate gate = events[i].gate;
    for (++i; i < events.size() && ImPlot::PlotToPixels(events[i].step, 1).x - x < r * 2.2f; ++i)
      gate = worse(gate, events[i].gate);
    if (x < plot.x - r * 2 || x > right) continue;
    list.AddCircleFilled({x, y + r * 1.8f}, r * 1.7f, faint(colour().plot, 0.90f));
    draw_mark(list, {x, y + r * 1.8f}, r, mark_of(gate));
  }
  ImPlot::PopPlotClipRect();
}

void setup_curves(StepRange& steps, ShownValues& shown, const CurveAxes& axes) {
  const LockedAxes locked = locked_axes();
  ImPlot::SetupAxes(axes.steps, axes.values, axes.step_flags | locked.steps, locked.values);
  const double top = top_of(axes);
  if (axes.logarithmic) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  name_values(axes, shown, top);
  ImPlot::SetupAxisLinks(ImAxis_X1, &steps.first, &steps.last);
  setup_values(shown, steps.asked(), axes.low, top);
  ImPlot::SetupFinish();
  note_values(shown);
}

}  // namespace nanquest::viewer
