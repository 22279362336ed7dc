#include "viewer/model/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "viewer/model/columns.h"
#include "viewer/model/numbers.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kToldNames = 12;  // series that only one run has

/// The manifest's entries about how a run was made and ended.
std::map<std::string, std::string> settings_of(const Session& session, const Manifest& m) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : m.config) out[key] = value;
  out["command"] = m.command;
  out["nanquest"] = m.nanquest;
  out["ranks"] = std::to_string(m.world_size);
  out["status"] = session.status();
  return out;
}

template <class Map>
std::vector<Difference> differing(const Map& here, const Map& there) {
  std::set<typename Map::key_type> keys;
  for (const Map* map : {&here, &there})
    for (const auto& [key, value] : *map) keys.insert(key);
  std::vector<Difference> out;
  const auto value = [](const Map& map, const auto& key) {
    const auto found = map.find(key);
    return found == map.end() || found->second.empty() ? std::string("-") : found->second;
  };
  for (const auto& key : keys)
    if (std::string a = value(here, key), b = value(there, key); a != b) out.push_back({key, a, b});
  return out;
}

/// Internal columns are shown elsewhere, and clock readings always differ.
bool is_compared(const std::string& column) {
  return !is_own_column(column) && !is_clock_column(column);
}

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// Rows of one step are matched in the order in which they were written.
SeriesDifference series_difference(const std::string& name, const History& here, const History& there) {
  SeriesDifference out;
  out.name = name;
  const bool logged = known_column(name) == nullptr;
  const Pyramid &a = *here.scalar(name), &b = *there.scalar(name);
  std::optional<double> seen;  // the step that was counted last
  for (std::size_t i = 0, j = 0; i < here.rows() && j < there.rows();) {
    if (here.steps()[i] != there.steps()[j]) {
      ++(here.steps()[i] < there.steps()[j] ? i : j);
      continue;
    }
    if (seen != here.steps()[i]) ++out.steps;
    seen = here.steps()[i];
    const bool not_logged = logged && std::isnan(a[i]) != std::isnan(b[j]);
    if (!out.at && !not_logged && !same(a[i], b[j])) {
      out.at = here.steps()[i];
      out.here = a[i];
      out.there = b[j];
    }
    ++i, ++j;
  }
  return out;
}

/// Columns of `one` that are compared, hold anything, and are not in `other`.
std::vector<std::string> only_in(const History& one, const History& other) {
  std::vector<std::string> out;
  for (const std::string& name : one.scalar_names()) {
    if (!is_compared(name) || other.scalar(name) != nullptr) continue;
    const Pyramid& values = *one.scalar(name);
    if (values.query(0, values.size()).nan < values.size()) out.push_back(name);
  }
  return out;
}

using Place = std::pair<std::int64_t, std::int32_t>;  // step and rank

std::map<Place, std::string> incidents_of(const Session& session) {
  std::map<Place, std::string> out;
  for (const IncidentEntry& e : session.incidents()) {
    std::string& text = out[{e.files.step, e.files.rank}];
    text += (text.empty() ? "" : "; ") + e.standing();
  }
  return out;
}

std::vector<Difference> incidents_of(const Session& here, const Session& there) {
  const std::map<Place, std::string> a = incidents_of(here), b = incidents_of(there);
  std::set<Place> places;
  for (const auto* map : {&a, &b})
    for (const auto& [place, text] : *map) places.insert(place);
  std::vector<Difference> out;
  for (const Place& place : places) {
    const auto in = [&](const auto& map) { return map.count(place) != 0 ? map.at(place) : std::string("-"); };
    out.push_back({"step " + std::to_string(place.first) + ", rank " + std::to_string(place.second), in(a),
                   in(b), Link::to_step(place.first)});
  }
  return out;
}

}  // namespace

Comparison compare(const Session& here, const Session& there) {
  Comparison out;
  out.here = here.title(), out.there = there.title();
  if (out.here == out.there) out.here = here.path(), out.there = there.path();
  if (out.here == out.there) out.there += " (again)";
  if (here.manifest() && there.manifest())
    out.settings = differing(settings_of(here, *here.manifest()), settings_of(there, *there.manifest()));
  const History &a = here.history(), &b = there.history();
  for (const std::string& name : a.scalar_names())
    if (is_compared(name) && b.scalar(name) != nullptr) out.series.push_back(series_difference(name, a, b));
  std::stable_partition(out.series.begin(), out.series.end(),
                        [](const SeriesDifference& s) { return s.name == "loss"; });
  out.only_here = only_in(a, b);
  out.only_there = only_in(b, a);
  out.incidents = incidents_of(here, there);
  return out;
}

std::string Comparison::headline() const {
  const std::string both = here + " and " + there;
  if (series.empty()) return both + " have no series in common";
  const auto* first = &series.front();
  for (const SeriesDifference& s : series)
    if (s.at && (!first->at || *s.at < *first->at)) first = &s;
  if (first->steps == 0) return both + " have no step in common";
  if (!first->at) return both + " are equal in all " + counted(first->steps, "step") + " that both have";
  return both + " differ from step " + exact_number(*first->at) + " on: " + first->name + " " +
         number_beside(first->here, first->there) + " against " + number_beside(first->there, first->here);
}

std::vector<std::string> Comparison::only_lines() const {
  std::vector<std::string> lines;
  for (const auto& [run, names] : {std::pair(&here, &only_here), std::pair(&there, &only_there)}) {
    if (names->empty()) continue;
    std::string line = "only in " + *run + ": ";
    for (std::size_t i = 0; i < std::min(names->size(), kToldNames); ++i)
      line.append(i == 0 ? "" : ", ").append((*names)[i]);
    if (names->size() > kToldNames) line += " and " + grouped(names->size() - kToldNames) + " more";
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace nanquest::viewer
