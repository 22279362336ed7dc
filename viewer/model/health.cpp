#include "viewer/model/health.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string_view>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kNearest = 3, kGroups = 6, kTimed = 100;
constexpr const char* kNotRecorded = "not recorded";

/// The length of what all names begin with, up to and with a full stop.
std::size_t common_path(const std::vector<std::string>& names) {
  if (names.empty()) return 0;
  std::size_t common = names[0].size();
  for (const std::string& name : names)
    common = std::min<std::size_t>(
        common, static_cast<std::size_t>(std::ranges::mismatch(names[0], name).in1 - names[0].begin()));
  const std::size_t stop = common == 0 ? std::string::npos : names[0].rfind('.', common - 1);
  return stop == std::string::npos ? 0 : stop + 1;
}

/// "model.layers.3" of "model.layers.3.mlp.up": up to the first number after what all names begin with;
/// without one the next two parts.
std::string group_of(const std::string& layer, std::size_t common) {
  std::size_t second = std::string::npos;
  for (std::size_t at = common, parts = 1; at <= layer.size(); ++parts) {
    const std::size_t stop = std::min(layer.find('.', at), layer.size());
    const std::string_view part = std::string_view(layer).substr(at, stop - at);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos)
      return layer.substr(0, stop);
    if (parts == 2) second = stop;
    at = stop + 1;
  }
  return layer.substr(0, second);
}

std::string headroom_text(const Headroom& headroom) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kNearest, headroom.places().size()); ++i) {
    const HeadroomPlace& p = headroom.places()[i];
    text += (text.empty() ? "" : "\n") + short_number(p.bits) + " bits below overflow at step " +
            exact_number(p.step) + " (max |x| " + short_number(p.amax) + "): " + p.name;
  }
  return text;
}

std::string forecast_text(const Session& session) {
  std::string text;
  if (session.manifest())
    for (const ManifestForecast& forecast : session.manifest()->forecasts)
      text +=
          (text.empty() ? "at step " : "\nat step ") + std::to_string(forecast.step) + ": " + forecast.text;
  return text.empty() && !session.headroom().empty() ? "no overflow is forecast" : text;
}

std::string groups_text(const History& history) {
  const auto groups = gradient_groups(history);
  std::string text;
  for (std::size_t i = 0; i < std::min(kGroups, groups.size()); ++i)
    text += (i == 0 ? "" : ", ") + groups[i].first + " " + short_number(groups[i].second);
  if (groups.size() > kGroups) text += " and " + counted(groups.size() - kGroups, "smaller group");
  return text.empty() ? "" : "L2 at step " + exact_number(history.steps().back()) + ": " + text;
}

/// "at most 50 % of a place's values: aten::bmm in blocks.3"; "" if no share is on record.
std::string share_text(const Headroom& headroom, double HeadroomPlace::*share) {
  const HeadroomPlace* most = nullptr;
  for (const HeadroomPlace& p : headroom.places())
    if (p.*share >= 0 && (most == nullptr || p.*share > most->*share)) most = &p;
  if (most == nullptr) return "";
  if (most->*share == 0) return "none at any place";
  return "at most " + short_number(100 * (most->*share)) + " % of a place's values: " + most->name;
}

/// The median of the last values that are finite and pass `counts`; NaN if there are none.
double median_of_last(const Pyramid* values, const std::function<bool(double)>& counts) {
  std::vector<double> last;
  for (std::size_t r = values == nullptr ? 0 : values->size(); r-- > 0 && last.size() < kTimed;)
    if (std::isfinite((*values)[r]) && counts((*values)[r])) last.push_back((*values)[r]);
  if (last.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = last.begin() + static_cast<std::ptrdiff_t>(last.size() / 2);
  std::ranges::nth_element(last, middle);
  return *middle;
}

std::string speed_text(const History& history) {
  const double seconds = step_seconds(history);
  if (std::isnan(seconds)) return "";
  return short_number(1 / seconds) + " steps a second, " + short_number(1000 * seconds) +
         " ms each (median of the last 100 or fewer; time between steps is not in it)";
}

std::string amount_text(double bytes) {
  return bytes_text(static_cast<std::uint64_t>(bytes));
}

std::string memory_text(const History& history) {
  const auto range = [&](const char* column) {
    const Pyramid* values = history.scalar(column);
    return values == nullptr ? Extremes() : values->query(0, values->size());
  };
  const Extremes resident = range("resident"), device = range("device_peak");
  std::string text;
  if (resident.has_finite()) {
    const double now = (*history.scalar("resident"))[history.rows() - 1];
    text = "the process takes " +
           (std::isfinite(now) ? amount_text(now) + " at step " + exact_number(history.steps().back()) + ", "
                               : "") +
           amount_text(resident.max) + " at most (resident set)";
  }
  if (device.has_finite())
    text += (text.empty() ? "" : "; ") + std::string("tensors on the device took ") +
            amount_text(device.max) + " at most (the allocator's peak)";
  return text.empty() ? kNotRecorded : text;
}

std::string cost_text(const History& history) {
  const auto share = [&](const char* column) {
    return median_of_last(history.scalar(column), [](double value) { return value >= 0; });
  };
  const double own = share("probe_share"), watched = share("watch_share");
  std::string text;
  if (!std::isnan(own)) text = short_number(100 * own) + " % of a step passes inside the probe's functions";
  if (!std::isnan(watched))
    text += (text.empty() ? "" : "; ") + std::string("watched steps take ") + short_number(100 * watched) +
            " % of the time";
  return text.empty() ? kNotRecorded : text;
}

}  // namespace

std::vector<std::pair<std::string, double>> gradient_groups(const History& history) {
  const std::vector<std::string>& layers = history.layers(Statistic::gradient);
  const std::size_t common = common_path(layers);
  std::map<std::string, double> squares;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Pyramid& series = history.series(Statistic::gradient, i);
    if (series.size() == 0) continue;
    const double norm = series[series.size() - 1];
    squares[group_of(layers[i], common)] += norm * norm;
  }
  std::vector<std::pair<std::string, double>> out;
  for (const auto& [group, square] : squares)
    if (!std::isnan(square)) out.emplace_back(group, std::sqrt(square));
  std::ranges::stable_sort(out, std::greater(), &std::pair<std::string, double>::second);
  return out;
}

double step_seconds(const History& history) {
  return median_of_last(history.scalar("seconds"), [](double seconds) { return seconds > 0; });
}

std::vector<Fact> health_facts(const Session& session) {
  std::vector<Fact> facts;
  const History& history = session.history();
  if (!session.incidents().empty() || history.empty()) return facts;
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) facts.push_back({label, text});
  };
  add("Nearest", headroom_text(session.headroom()));
  add("Forecast", forecast_text(session));
  add("Gradients", groups_text(history));
  add("Zeros", share_text(session.headroom(), &HeadroomPlace::zero));
  add("Subnormal", share_text(session.headroom(), &HeadroomPlace::subnormal));
  add("Speed", speed_text(history));
  add("Memory", memory_text(history));
  add("Probe", cost_text(history));
  return facts;
}

}  // namespace nanquest::viewer
