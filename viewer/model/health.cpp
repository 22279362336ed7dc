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

/// "at most 50 % of the values: aten::bmm in blocks.3"; "" if no share is on record.
std::string share_text(const Headroom& headroom, double HeadroomPlace::*share) {
  const HeadroomPlace* most = nullptr;
  for (const HeadroomPlace& p : headroom.places())
    if (p.*share >= 0 && (most == nullptr || p.*share > most->*share)) most = &p;
  if (most == nullptr) return "";
  return "at most " + short_number(100 * (most->*share)) + " % of a place's values: " + most->name;
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
    squares[layers[i].substr(0, layers[i].find('.', common))] += norm * norm;
  }
  std::vector<std::pair<std::string, double>> out;
  for (const auto& [group, square] : squares)
    if (!std::isnan(square)) out.emplace_back(group, std::sqrt(square));
  std::ranges::stable_sort(out, std::greater(), &std::pair<std::string, double>::second);
  return out;
}

double steps_per_second(const History& history) {
  const Pyramid* seconds = history.scalar("seconds");
  std::vector<double> last;
  for (std::size_t r = seconds == nullptr ? 0 : seconds->size(); r-- > 0 && last.size() < kTimed;)
    if ((*seconds)[r] > 0 && std::isfinite((*seconds)[r])) last.push_back((*seconds)[r]);
  if (last.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = last.begin() + static_cast<std::ptrdiff_t>(last.size() / 2);
  std::ranges::nth_element(last, middle);
  return 1 / *middle;
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
  if (const double rate = steps_per_second(history); !std::isnan(rate))
    add("Speed", short_number(rate) + " steps a second (median of the last 100 or fewer)");
  return facts;
}

}  // namespace nanquest::viewer
