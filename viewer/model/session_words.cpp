// Texts about the session: what it shows, how the run is, what can't be read, what to run next.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "viewer/model/numbers.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

/// "3 hours": whole units.
std::string in_units(std::chrono::seconds age) {
  const auto s = static_cast<std::uint64_t>(std::max<std::int64_t>(age.count(), 0));
  return s < 60       ? "under a minute"
         : s < 7200   ? counted(s / 60, "minute")
         : s < 172800 ? counted(s / 3600, "hour")
                      : counted(s / 86400, "day");
}

std::chrono::seconds age_of(fs::file_time_type written) {
  return std::chrono::duration_cast<std::chrono::seconds>(fs::file_time_type::clock::now() - written);
}

}  // namespace

std::string Session::age_text() const {
  return !is_run_ || written_ == fs::file_time_type::min() ? "" : in_units(age_of(written_));
}

std::vector<std::string> Session::complaints() const {
  std::vector<std::string> all;
  for (const std::string& error : {lost_, manifest_error_, headroom_error(), rehearsed_error_})
    if (!error.empty()) all.push_back(error);
  for (const SeriesWord& word : series_words())
    if (!word.error.empty()) all.push_back(word.error);
  for (const IncidentEntry& entry : incidents())
    for (const std::string& error : {entry.error, entry.verdict_error})
      if (!error.empty()) all.push_back(error);
  if (incident_ && !incident_->replay_error.empty()) all.push_back(incident_->replay_error);
  return all;
}

std::string Session::lost_series() const {
  if (!is_run_ || !listing_->series.empty() || !manifest_) return "";
  std::string lost = "the run's series file is not here";
  if (history().empty()) return lost;
  return lost + "; steps " + exact_number(history().steps().front()) + " to " +
         exact_number(history().steps().back()) + " are those that the incident's file holds";
}

std::string Session::status() const {
  if (!lost_.empty()) return "gone: moved, renamed or removed while it was shown";
  if (!manifest_) return "";
  const std::chrono::seconds age = age_of(written_);
  if (manifest_->status == "running" && age > std::chrono::minutes(2))
    return "running, says the manifest, but nothing was written for " + in_units(age);
  const std::string& outcome = manifest_->outcome;
  return manifest_->status + (outcome.empty() || outcome == manifest_->status ? "" : ": " + outcome);
}

}  // namespace nanquest::viewer
