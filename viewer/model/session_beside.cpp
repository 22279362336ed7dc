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
  const auto add = [&](const History& history) {
    if (history.empty()) return;
    const std::vector<double>& steps = history.steps();
    span = span ? std::pair(std::min(span->first, steps.front()), std::max(span->second, steps.back()))
                : std::pair(steps.front(), steps.back());
  };
  add(history());
  for (const auto& other : others_) add(other->history());
  return span;
}

}  // namespace nanquest::viewer
