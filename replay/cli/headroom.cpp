// nanquest-replay headroom RUN: what is near the limit of its format, and how it changes.
#include "probe/snapshot/ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "probe/numerics/trend.h"
#include "probe/snapshot/run_dir.h"
#include "replay/cli/commands.h"
#include "replay/report/report.h"
#include "replay/verdict/json.h"

namespace nanquest::cli {
namespace {

constexpr std::size_t kWindow = 16;    // looks that the line is fitted to
constexpr double kStill = 1.0 / 1024;  // bits: what moves less is constant

struct Place {
  std::int32_t rank = 0;
  PlaceRanges ranges;
  bool constant = false;
  std::optional<Trend> trend;
  std::optional<Reach> reach;
  double bits() const { return ranges.headroom.back(); }
};

Place place_of(std::int32_t rank, PlaceRanges ranges) {
  Place place{rank, std::move(ranges), false, {}, {}};
  const std::size_t n = std::min(kWindow, place.ranges.steps.size());
  const auto x = std::span(place.ranges.steps).last(n), y = std::span(place.ranges.headroom).last(n);
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  place.constant = n > 1 && *most - *least <= kStill;
  place.trend = trend_of(x, y);
  if (place.trend && !place.constant) place.reach = reaches_zero(*place.trend);
  return place;
}

std::string outlook(const Place& place) {
  if (place.constant) return "stays";
  if (!place.reach) return place.trend ? "does not grow" : "";
  if (place.reach->steps > 1e6) return "does not grow";
  char text[96];
  if (std::isfinite(place.reach->latest))
    std::snprintf(text, sizeof text, "at its end in %.0f steps (%.0f to %.0f)", place.reach->steps,
                  place.reach->earliest, place.reach->latest);
  else
    std::snprintf(text, sizeof text, "at its end in %.0f steps, or never", place.reach->steps);
  return text;
}

nlohmann::ordered_json to_json(const Place& p) {
  nlohmann::ordered_json j = {{"rank", p.rank},
                              {"place", p.ranges.place},
                              {"step", p.ranges.steps.back()},
                              {"amax", p.ranges.amax.back()},
                              {"bits", p.bits()},
                              {"constant", p.constant}};
  j["bits_per_step"] = p.trend ? nlohmann::ordered_json(p.trend->slope) : nlohmann::ordered_json();
  j["steps_left"] = p.reach ? nlohmann::ordered_json(p.reach->steps) : nlohmann::ordered_json();
  return j;
}

/// An incident of the run, as far as its replay has been made.
struct Overflowed {
  IncidentFiles files;
  std::string cause;  ///< "FP16_OVERFLOW, aten::mul in act"; "" where it was not replayed yet
};

std::vector<Overflowed> overflowed(const RunListing& run) {
  std::vector<Overflowed> found;
  for (const IncidentFiles& files : run.incidents) {
    Overflowed one{files, ""};
    const auto verdict = files.verdict.empty() ? Result<Verdict>(Error{}) : read_verdict(files.verdict);
    if (verdict && verdict->found)
      one.cause = std::string(word(verdict->cause)) + ", " + where_text(*verdict);
    found.push_back(std::move(one));
  }
  return found;
}

/// Said before how much is left: what is over its end already has none.
void print(const std::vector<Overflowed>& all) {
  constexpr std::size_t kNamed = 3;
  for (std::size_t i = 0; i < all.size() && i < kNamed; ++i)
    std::printf(
        "step %lld was not finite (%s)\n", static_cast<long long>(all[i].files.step),
        (all[i].cause.empty() ? "see nanquest-replay " + all[i].files.snapshot : all[i].cause).c_str());
  if (all.size() > kNamed) std::printf("and %zu more incidents\n", all.size() - kNamed);
  if (!all.empty()) std::printf("the last watched steps before and after, by place:\n");
}

}  // namespace

int headroom_command(const HeadroomArguments& arguments) {
  const Result<RunListing> run = list_run(arguments.run);
  if (!run) return fail(run.error());
  std::vector<Place> places;
  bool any = false;
  for (const SeriesFile& series : run->series) {
    const std::string path = ranges_path(arguments.run, series.rank);
    if (!std::filesystem::exists(path)) continue;
    auto ranges = read_ranges(path);
    if (!ranges) return fail(ranges.error());
    any = true;
    for (PlaceRanges& each : *ranges)
      if (!each.steps.empty() && std::isfinite(each.headroom.back()))
        places.push_back(place_of(series.rank, std::move(each)));
  }
  if (!any)
    return fail(
        {ErrorCode::bad_file, arguments.run + ": holds no ranges",
         "they are written at levels trace and watch of an attached program, from its first step on"});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.bits() < b.bits(); });
  const auto near = std::partition_point(places.begin(), places.end(),
                                         [&](const Place& p) { return p.bits() <= arguments.bits; });
  const std::vector<Overflowed> incidents = overflowed(*run);
  const bool finding =
      !incidents.empty() || std::any_of(places.begin(), near, [](const Place& p) { return !p.constant; });
  if (arguments.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    std::for_each(places.begin(), near, [&](const Place& p) { list.push_back(to_json(p)); });
    nlohmann::ordered_json bad = nlohmann::ordered_json::array();
    for (const Overflowed& o : incidents)
      bad.push_back({{"step", o.files.step},
                     {"rank", o.files.rank},
                     {"snapshot", o.files.snapshot},
                     {"cause", o.cause}});
    const nlohmann::ordered_json all = {{"run", arguments.run},
                                        {"incidents", bad},
                                        {"bits", arguments.bits},
                                        {"places", places.size()},
                                        {"near", list}};
    std::printf("%s\n", all.dump(2).c_str());
    return static_cast<int>(finding ? ExitCode::finding : ExitCode::ok);
  }
  print(incidents);
  if (near == places.begin()) {
    std::printf("none of %zu places is within %g bits of the end of its format", places.size(),
                arguments.bits);
    if (!places.empty())
      std::printf("; nearest: %s, %.1f bits left at step %.0f", places[0].ranges.place.c_str(),
                  places[0].bits(), places[0].ranges.steps.back());
    std::printf("\n");
  } else {
    std::printf("%6s %11s %8s  %-34s %s\n", "bits", "largest |x|", "step", "outlook", "place");
    std::for_each(places.begin(), near, [&](const Place& p) {
      std::printf("%6.2f %11s %8.0f  %-34s %s%s\n", p.bits(), short_number(p.ranges.amax.back()).c_str(),
                  p.ranges.steps.back(), outlook(p).c_str(), p.ranges.place.c_str(),
                  run->series.size() > 1 ? (" of rank " + std::to_string(p.rank)).c_str() : "");
    });
  }
  return static_cast<int>(finding ? ExitCode::finding : ExitCode::ok);
}

}  // namespace nanquest::cli
