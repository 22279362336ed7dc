// A second run beside the one that is shown.
#include <algorithm>
#include <memory>
#include <utility>

#include "viewer/model/session.h"

namespace nanquest::viewer {

Status Session::compare_with(const std::string& path) {
  if (path.empty()) {
    other_.reset();
  } else {
    Result<Session> opened = open(path, progress_);
    if (!opened) return opened.error();
    other_ = std::make_shared<const Session>(std::move(opened).value());
  }
  compare_again();
  note_reading(false);
  return {};
}

void Session::compare_again() {
  comparison_ = other_ == nullptr ? nullptr : std::make_shared<const Comparison>(compare(*this, *other_));
}

bool Session::poll_other() {
  if (other_ == nullptr) return false;
  Session now = *other_;
  if (!now.poll()) return false;
  other_ = std::make_shared<const Session>(std::move(now));
  note_reading(false);
  return true;
}

bool Session::poll() {
  const bool own = poll_own(), beside = poll_other();
  if (own || beside) compare_again();
  return own || beside;
}

Status Session::reload() {
  Status own = reload_own();
  (void)poll_other();
  compare_again();
  return own;
}

std::optional<std::pair<double, double>> Session::steps_shown() const {
  std::optional<std::pair<double, double>> span;
  for (const Session* session : {this, other()}) {
    if (session == nullptr || session->history().empty()) continue;
    const std::vector<double>& steps = session->history().steps();
    span = span ? std::pair(std::min(span->first, steps.front()), std::max(span->second, steps.back()))
                : std::pair(steps.front(), steps.back());
  }
  return span;
}

}  // namespace nanquest::viewer
