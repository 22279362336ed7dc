#include "viewer/ui/sparkline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "viewer/ui/curves.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

/// Where steps and values are in the picture.
struct Frame {
  ImVec2 at, size;
  double first = 0, last = 1, low = 0, high = 1;
  bool logarithmic = false;

  float x(double step) const { return at.x + size.x * static_cast<float>((step - first) / (last - first)); }
  float y(double value) const {
    const double v = logarithmic ? std::log(value) : value;
    return at.y + size.y * static_cast<float>(1 - (v - low) / (high - low));
  }
};

Frame frame_of(const History& history, const Extremes& all, ImVec2 at, ImVec2 size) {
  Frame frame{at, size, history.steps().front(), history.steps().back()};
  if (frame.last <= frame.first) frame.last = frame.first + 1;
  if (!all.has_finite()) return frame;
  frame.logarithmic = all.min > 0;
  frame.low = frame.logarithmic ? std::log(all.min) : all.min;
  frame.high = frame.logarithmic ? std::log(all.max) : all.max;
  if (frame.high - frame.low < 1e-12) frame.low -= 0.5, frame.high += 0.5;
  return frame;
}

}  // namespace

void sparkline(const History& history, const Pyramid& series, double step, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy(size);
  if (history.empty() || series.size() == 0) return;
  const float lane = size.y * 0.3f;  // for what is not finite
  const Extremes all = series.query(0, series.size());
  const Frame frame = frame_of(history, all, {at.x, at.y + lane}, {size.x, size.y - lane});
  ImDrawList& list = *ImGui::GetWindowDrawList();
  if (step >= frame.first && step <= frame.last)
    list.AddLine({frame.x(step), at.y}, {frame.x(step), at.y + size.y}, ImGui::GetColorU32(colour().muted));
  constexpr double foot = -std::numeric_limits<double>::infinity();
  for (const Curve& run : finite_runs(history, series, 0, series.size(), foot, size.x)) {
    for (std::size_t i = 0; i < run.x.size(); ++i) list.PathLineTo({frame.x(run.x[i]), frame.y(run.y[i])});
    if (run.x.size() == 1) list.PathLineTo({frame.x(run.x[0]) + 1, frame.y(run.y[0])});
    list.PathStroke(ImGui::GetColorU32(colour().sky), 0, 1.5f);
  }
  const auto columns = static_cast<std::size_t>(std::max(1.0f, size.x / std::max(lane, 1.0f)));
  for (std::size_t c = 0; c < columns && all.non_finite() > 0; ++c) {
    const std::size_t a = series.size() * c / columns, b = series.size() * (c + 1) / columns;
    const Extremes e = series.query(a, b);
    if (e.non_finite() > 0)
      draw_mark(list, {frame.x((history.steps()[a] + history.steps()[b - 1]) / 2), at.y + lane / 2}, lane / 2,
                worst(e));
  }
}

}  // namespace nanquest::viewer
