#include "viewer/panels/tensor/plots.h"

#include <algorithm>
#include <cmath>

#include "viewer/model/numbers.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

struct Bars {
  std::vector<double> x, y;
  double most = 1;
  int low = -16, high = 16;
};

Bars bars_of(const TensorDetail& d, int scale) {
  Bars bars;
  bool any = false;
  for (int i = 0; i < kHistogramBins; ++i) {
    const auto n = static_cast<double>(d.histogram[static_cast<std::size_t>(i)]);
    if (n == 0) continue;
    const int exponent = kHistogramMinExponent + i;
    bars.x.push_back(exponent);
    bars.y.push_back(n);
    bars.most = std::max(bars.most, n);
    bars.low = any ? std::min(bars.low, exponent) : exponent;
    bars.high = any ? std::max(bars.high, exponent) : exponent;
    any = true;
  }
  // fp16's whole range is always in view: most questions are about it.
  bars.low = std::min(bars.low, -26 - scale) - 2;
  bars.high = std::max(bars.high, 17 - scale) + 2;
  return bars;
}

/// One row per format: solid where it is normal, faint where subnormal.
void format_bands(const Bars& bars, int scale) {
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const ImVec2 origin = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const float h = ImGui::GetFontSize() * 0.8f;
  for (std::size_t i = 0; i < std::size(kFitFormats); ++i) {
    const Band band = band_of(kFitFormats[i], scale);
    const auto x_of = [&](double exponent) {
      return ImPlot::PlotToPixels(std::clamp<double>(exponent, bars.low - 4.0, bars.high + 4.0), 1).x;
    };
    const float y = origin.y + 4 + static_cast<float>(i) * (h + 3);
    const ImVec4 c = series_colour(i);
    list.AddRectFilled({x_of(band.normal - 0.5), y}, {x_of(band.last + 0.5), y + h},
                       ImGui::GetColorU32({c.x, c.y, c.z, 0.55f}));
    list.AddRectFilled({x_of(band.subnormal - 0.5), y}, {x_of(band.normal - 0.5), y + h},
                       ImGui::GetColorU32({c.x, c.y, c.z, 0.22f}));
    const std::string name(info(kFitFormats[i]).name);
    const float right = std::min(x_of(band.last + 0.5), origin.x + size.x);
    const float at = right - ImGui::CalcTextSize(name.c_str()).x - 4;
    list.AddText({at, y + h * 0.5f - ImGui::GetFontSize() * 0.5f}, ImGui::GetColorU32(colour().strong),
                 name.c_str());
  }
}

}  // namespace

Band band_of(Format format, int scale) {
  const FormatInfo& f = info(format);
  return {std::log2(f.min_subnormal) - scale, static_cast<double>(f.min_exponent) - scale,
          static_cast<double>(f.max_exponent) - scale};
}

void draw_exponents(const TensorDetail& detail, int scale, float height) {
  const Bars bars = bars_of(detail, scale);
  if (!ImPlot::BeginPlot(("##exponents" + detail.tensor.path).c_str(), {-1, height}, kBarePlot)) return;
  const std::string bands = scale == 0 ? "" : "; formats of values times 2^" + std::to_string(scale);
  ImPlot::SetupAxes(("exponent of 2" + bands).c_str(), "values", 0, 0);
  ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  // Room above the tallest bar for the bands: as many decades as they take of the height.
  const double lanes = std::size(kFitFormats) * (ImGui::GetFontSize() * 0.8 + 3) + 8;
  const double share = std::clamp(lanes / std::max(1.0f, height - ImGui::GetFontSize() * 3), 0.1, 0.75);
  const double decades = std::log10(bars.most) + 0.5;
  ImPlot::SetupAxesLimits(bars.low, bars.high, 0.5, std::pow(10.0, decades / (1 - share)), ImPlotCond_Once);
  ImPlot::SetupFinish();
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  ImPlot::PushPlotClipRect();
  for (std::size_t i = 0; i < bars.x.size(); ++i)
    list.AddRectFilled(ImPlot::PlotToPixels(bars.x[i] - 0.42, bars.y[i]),
                       ImPlot::PlotToPixels(bars.x[i] + 0.42, 0.5), ImGui::GetColorU32(colour().sky));
  format_bands(bars, scale);
  ImPlot::PopPlotClipRect();
  if (ImPlot::IsPlotHovered()) {
    const int exponent = static_cast<int>(std::lround(ImPlot::GetPlotMousePos().x)),
              bin = exponent - kHistogramMinExponent;
    if (bin >= 0 && bin < kHistogramBins)
      ImGui::SetTooltip("2^%d to 2^%d\n%s", exponent, exponent + 1,
                        counted(detail.histogram[static_cast<std::size_t>(bin)], "value").c_str());
  }
  ImPlot::EndPlot();
}

void draw_slice(UiState& state, const TensorSlice& slice, float height) {
  double low = 0, high = 0;
  for (const Extremes& e : slice.cells) {
    if (!e.has_finite()) continue;
    const double a = std::max(std::abs(e.min), std::abs(e.max));
    high = std::max(high, a);
    if (a > 0 && (low == 0 || a < low)) low = a;
  }
  low = std::max(low, high * 1e-6);
  if (!ImPlot::BeginPlot("##slice", {-1, height}, kBarePlot)) return;
  ImPlot::SetupAxes("column", "row", ImPlotAxisFlags_NoGridLines,
                    ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_Invert);
  ImPlot::SetupAxesLimits(0, static_cast<double>(slice.columns), 0, static_cast<double>(slice.rows),
                          ImPlotCond_Always);
  ImPlot::SetupFinish();
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const double dx = static_cast<double>(slice.columns) / static_cast<double>(slice.cell_columns);
  const double dy = static_cast<double>(slice.rows) / static_cast<double>(slice.cell_rows);
  ImPlot::PushPlotClipRect();
  for (std::int64_t r = 0; r < slice.cell_rows; ++r)
    for (std::int64_t c = 0; c < slice.cell_columns; ++c) {
      const Extremes& e = slice.at(r, c);
      const ImVec2 a = ImPlot::PlotToPixels(static_cast<double>(c) * dx, static_cast<double>(r) * dy);
      const ImVec2 b = ImPlot::PlotToPixels(static_cast<double>(c + 1) * dx, static_cast<double>(r + 1) * dy);
      const ImVec2 low_corner{std::floor(std::min(a.x, b.x)), std::floor(std::min(a.y, b.y))};
      const ImVec2 high_corner{std::floor(std::max(a.x, b.x)), std::floor(std::max(a.y, b.y))};
      if (e.non_finite()) {
        list.AddRectFilled(low_corner, high_corner, mark_colour(worst(e)));
        draw_shape(
            list, {(a.x + b.x) / 2, (a.y + b.y) / 2},
            std::min({(high_corner.x - low_corner.x) * 0.3f, (high_corner.y - low_corner.y) * 0.3f, 6.0f}),
            worst(e), ImGui::GetColorU32(colour().on_mark));
      } else if (e.has_finite()) {
        const double v = std::max(std::abs(e.min), std::abs(e.max));
        const double t = v > 0 && high > low ? std::log(v / low) / std::log(high / low) : v > 0 ? 0.5 : 0;
        list.AddRectFilled(low_corner, high_corner, viridis(t));
      }
    }
  if (const auto cell = slice.cell_of(state.session.shown_element())) {
    const auto [r, c] = *cell;
    const ImVec2 a = ImPlot::PlotToPixels(static_cast<double>(c) * dx, static_cast<double>(r) * dy),
                 b = ImPlot::PlotToPixels(static_cast<double>(c + 1) * dx, static_cast<double>(r + 1) * dy);
    list.AddRect({std::min(a.x, b.x) - 2, std::min(a.y, b.y) - 2},
                 {std::max(a.x, b.x) + 2, std::max(a.y, b.y) + 2}, ImGui::GetColorU32(colour().strong), 0, 2);
  }
  ImPlot::PopPlotClipRect();
  if (!state.options.still && ImPlot::IsPlotHovered()) {
    const ImPlotPoint at = ImPlot::GetPlotMousePos();
    const auto r = static_cast<std::int64_t>(at.y / dy), c = static_cast<std::int64_t>(at.x / dx);
    if (r >= 0 && c >= 0 && r < slice.cell_rows && c < slice.cell_columns) {
      if (ImGui::IsMouseReleased(ImGuiMouseButton_Left))
        state.session.select_element(
            slice.first + static_cast<std::uint64_t>(static_cast<std::int64_t>(at.y) * slice.columns +
                                                     static_cast<std::int64_t>(at.x)));
      const Extremes& e = slice.at(r, c);
      const std::string values =
          e.has_finite()
              ? (e.min == e.max ? short_number(e.min) : short_number(e.min) + " to " + short_number(e.max))
              : "";
      ImGui::SetTooltip("row %.0f, column %.0f\n%s %s", std::floor(at.y), std::floor(at.x), values.c_str(),
                        bad_text(e.nan, e.pos_inf, e.neg_inf).c_str());
    }
  }
  ImPlot::EndPlot();
}

}  // namespace nanquest::viewer
