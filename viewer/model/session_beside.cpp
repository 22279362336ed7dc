// Runs beside the open one.
#include <algorithm>
#include <memory>
#include <utility>

#include "viewer/model/session.h"

namespace nanquest::viewer {

Status Session::compare_with(const std::vector<std::string>& paths) {
  if (paths.size() >= kMostRuns)
    return Error{ErrorCode::usage, std::to_string(paths.size() + 1) + " runs are too many to be told apart",
                 "choose at most " + std::to_string(kMostRuns)};
  std::vector<Read<Session>> beside;
  for (const std::string& path : paths) {
    const auto known = std::ranges::find(others_, path, [](const auto& other) { return other->path(); });
    if (known != others_.end()) {
      beside.push_back(*known);
      continue;
    }
    Result<Session> opened = open(path, progress_);
    if (!opened) return opened.error();
    if (opened->folder() != nullptr)
      return Error{ErrorCode::usage, path + ": is a folder of runs", "name one of them"};
    if (opened->diff() != nullptr)
      return Error{ErrorCode::usage, path + ": is a comparison of two steps, and no run", ""};
    beside.push_back(std::make_shared<const Session>(std::move(opened).value()));
  }
  others_ = std::move(beside);
  compare_again();
  note_reading(false);
  return {};
}

void Session::compare_again() {
  std::vector<const Session*> others;
  for (const auto& other : others_) others.push_back(other.get());
  comparison_ = others.empty() ? nullptr : std::make_shared<const Comparison>(compare(*this, others));
}

bool Session::poll_others() {
  bool news = false;
  for (Read<Session>& other : others_) {
    Session now = *other;
    if (!now.poll()) continue;
    other = std::make_shared<const Session>(std::move(now));
    news = true;
  }
  if (news) note_reading(false);
  return news;
}

const std::string& Session::lost_of_any() const {
  if (!lost_.empty()) return lost_;
  const auto gone = std::ranges::find_if(others_, [](const auto& other) { return !other->lost().empty(); });
  return gone == others_.end() ? lost_ : (*gone)->lost();
}

std::optional<std::pair<double, double>> Session::steps_shown() const {
  std::optional<std::pair<double, double>> span;
  const auto add = [&](double first, double last) {
    span = span ? std::pair(std::min(span->first, first), std::max(span->second, last))
                : std::pair(first, last);
  };
  const auto add_series = [&](const History& history) {
    if (!history.empty()) add(history.steps().front(), history.steps().back());
  };
  add_series(history());
  for (const auto& other : others_) add_series(other->history());
  // A run that is stopped by an incident has no row of that step.
  for (const IncidentEntry& entry : incidents()) {
    const auto step = static_cast<double>(entry.files.step);
    add(step, step);
  }
  return span;
}

}  // namespace nanquest::viewer
