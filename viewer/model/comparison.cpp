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

/// The facts in which the runs differ, by key; null for a run of which nothing is known.
template <class Map, class Name>
std::vector<Difference> differing(const std::vector<std::optional<Map>>& runs, Name&& name) {
  std::set<typename Map::key_type> keys;
  for (const auto& run : runs)
    if (run)
      for (const auto& [key, value] : *run) keys.insert(key);
  std::vector<Difference> out;
  for (const auto& key : keys) {
    Difference difference = name(key);
    std::set<std::string> known;
    for (const auto& run : runs) {
      const auto found = run ? run->find(key) : typename Map::const_iterator();
      const bool there = run && found != run->end() && !found->second.empty();
      difference.values.push_back(there ? found->second : "-");
      if (run) known.insert(difference.values.back());
    }
    if (known.size() > 1) out.push_back(std::move(difference));
  }
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

/// All of them, whether the runs differ in them or not.
std::vector<Difference> incidents_of(const std::vector<const Session*>& sessions) {
  std::vector<std::map<Place, std::string>> all;
  std::set<Place> places;
  for (const Session* session : sessions) {
    all.push_back(incidents_of(*session));
    for (const auto& [place, text] : all.back()) places.insert(place);
  }
  std::vector<Difference> out;
  for (const Place& place : places) {
    out.push_back({"step " + std::to_string(place.first) + ", rank " + std::to_string(place.second),
                   {},
                   Link::to_step(place.first)});
    for (const auto& run : all) out.back().values.push_back(run.count(place) != 0 ? run.at(place) : "-");
  }
  return out;
}

/// Titles; paths where titles are not enough.
std::vector<std::string> names_of(const std::vector<const Session*>& sessions) {
  std::vector<std::string> names;
  for (const Session* session : sessions) {
    const auto same = [&](const Session* other) { return other->title() == session->title(); };
    names.push_back(std::ranges::count_if(sessions, same) > 1 ? session->path() : session->title());
    const auto before = std::count_if(sessions.begin(), sessions.begin() + std::ssize(names) - 1,
                                      [&](const Session* s) { return s->path() == session->path(); });
    if (before > 0) names.back() += before > 1 ? " (again " + std::to_string(before) + ")" : " (again)";
  }
  return names;
}

Pair pair_of(const History& a, const History& b) {
  Pair out;
  for (const std::string& name : a.scalar_names())
    if (is_compared(name) && b.scalar(name) != nullptr) out.series.push_back(series_difference(name, a, b));
  std::stable_partition(out.series.begin(), out.series.end(),
                        [](const SeriesDifference& s) { return s.name == "loss"; });
  out.only_here = only_in(a, b);
  out.only_there = only_in(b, a);
  return out;
}

/// Where they part, or that they do not.
std::string sentence(const std::string& here, const std::string& there, const Pair& pair) {
  const std::string both = here + " and " + there;
  if (pair.series.empty()) return both + " have no series in common";
  const auto* first = &pair.series.front();
  for (const SeriesDifference& s : pair.series)
    if (s.at && (!first->at || *s.at < *first->at)) first = &s;
  if (first->steps == 0) return both + " have no step in common";
  if (!first->at) return both + " are equal in all " + counted(first->steps, "step") + " that both have";
  return both + " differ from step " + exact_number(*first->at) + " on: " + first->name + " " +
         number_beside(first->here, first->there) + " against " + number_beside(first->there, first->here);
}

}  // namespace

std::string letter_of_run(std::size_t run) {
  return {static_cast<char>('A' + run)};
}

Comparison compare(const Session& here, const std::vector<const Session*>& others) {
  std::vector<const Session*> sessions = {&here};
  sessions.insert(sessions.end(), others.begin(), others.end());
  Comparison out;
  out.runs = names_of(sessions);
  std::vector<std::optional<std::map<std::string, std::string>>> settings;
  for (const Session* session : sessions)
    settings.push_back(session->manifest() ? std::optional(settings_of(*session, *session->manifest()))
                                           : std::nullopt);
  out.settings = differing(settings, [](const std::string& key) { return Difference{key, {}}; });
  for (const Session* other : others) out.pairs.push_back(pair_of(here.history(), other->history()));
  out.incidents = incidents_of(sessions);
  return out;
}

std::string Comparison::headline() const {
  if (pairs.size() == 1) return sentences().front();
  std::string text = runs.front() + " beside ";
  for (std::size_t i = 1; i < runs.size(); ++i)
    text.append(i == 1 ? "" : i + 1 == runs.size() ? " and " : ", ").append(runs[i]);
  return text;
}

std::vector<std::string> Comparison::sentences() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < pairs.size(); ++i) out.push_back(sentence(runs[0], runs[i + 1], pairs[i]));
  return out;
}

std::vector<std::string> Comparison::only_lines() const {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& run, const std::string& beside, const auto& names) {
    if (names.empty()) return;
    std::string line = "only in " + run + (pairs.size() == 1 ? "" : ", not in " + beside) + ": ";
    for (std::size_t i = 0; i < std::min(names.size(), kToldNames); ++i)
      line.append(i == 0 ? "" : ", ").append(names[i]);
    if (names.size() > kToldNames) line += " and " + grouped(names.size() - kToldNames) + " more";
    lines.push_back(std::move(line));
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    add(runs[0], runs[i + 1], pairs[i].only_here);
    add(runs[i + 1], runs[0], pairs[i].only_there);
  }
  return lines;
}

}  // namespace nanquest::viewer
