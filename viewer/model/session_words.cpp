// Texts about the session: what it shows, how the run is, what can't be read, what to run next.
#include "viewer/model/numbers.h"
#include "viewer/model/run_state.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

std::string Session::age_text() const {
  return is_run_ ? viewer::age_text(written_) : "";
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
  return manifest_ ? status_text(manifest_->status, manifest_->outcome, written_) : "";
}

}  // namespace nanquest::viewer
