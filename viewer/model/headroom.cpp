#include "viewer/model/headroom.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace nanquest::viewer {
namespace {

constexpr const char* kLeast = "\n";  // no place is called so

double at_or_nan(const std::vector<double>& values, std::size_t i) {
  return i < values.size() ? values[i] : std::nan("");
}

}  // namespace

Headroom::Headroom(const std::vector<PlaceRanges>& ranges) {
  std::map<double, std::size_t> rows;  // of all steps
  for (const PlaceRanges& place : ranges)
    for (const double step : place.steps) rows.emplace(step, 0);
  std::size_t next = 0;
  for (auto& [step, row] : rows) row = next++;
  SeriesTable table{"scalars", {"step", kLeast}, {}};
  for (const PlaceRanges& place : ranges) table.columns.push_back(place.place);
  const std::size_t width = table.columns.size();
  table.values.assign(rows.size() * width, std::nan(""));
  nearest_.resize(rows.size());
  for (const auto& [step, row] : rows) table.values[row * width] = step;
  for (std::size_t p = 0; p < ranges.size(); ++p) {
    const PlaceRanges& place = ranges[p];
    HeadroomPlace nearest{place.place, HUGE_VAL, 0, 0, 0, 0};
    for (std::size_t i = 0; i < place.steps.size(); ++i) {
      const double bits = place.headroom[i];
      if (!std::isfinite(bits)) continue;  // nothing but zeros
      const std::size_t row = rows[place.steps[i]];
      table.values[row * width + 2 + p] = bits;
      if (double& least = table.values[row * width + 1]; !(least <= bits)) {
        least = bits;
        nearest_[row] = place.place;
      }
      if (bits < nearest.bits)
        nearest = {place.place,
                   bits,
                   place.steps[i],
                   place.amax[i],
                   at_or_nan(place.zero, i),
                   at_or_nan(place.subnormal, i)};
    }
    if (std::isfinite(nearest.bits)) places_.push_back(nearest);
  }
  std::ranges::stable_sort(places_, {}, &HeadroomPlace::bits);
  history_ = History({table});
}

const Pyramid* Headroom::bits(const std::string& place) const {
  return history_.scalar(place.empty() ? kLeast : place);
}

std::string Headroom::nearest(std::size_t row) const {
  return row < nearest_.size() ? nearest_[row] : "";
}

std::string module_of_place(const std::string& place) {
  const std::size_t in = place.find(" in "), end = place.find(" (");
  return in == std::string::npos || end == std::string::npos || end < in ? ""
                                                                         : place.substr(in + 4, end - in - 4);
}

}  // namespace nanquest::viewer
