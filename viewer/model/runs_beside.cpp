#include "viewer/model/runs_beside.h"

#include <algorithm>
#include <utility>

#include "viewer/model/session.h"

namespace nanquest::viewer {

const std::string* RunsBeside::lost() const {
  const auto gone = std::ranges::find_if(runs_, [](const auto& run) { return !run->lost().empty(); });
  return gone == runs_.end() ? nullptr : &(*gone)->lost();
}

Status RunsBeside::choose(const std::vector<std::string>& paths, Progress* progress) {
  if (paths.size() >= kMostRuns)
    return Error{ErrorCode::usage, std::to_string(paths.size() + 1) + " runs are too many to be told apart",
                 "choose at most " + std::to_string(kMostRuns)};
  std::vector<std::shared_ptr<const Session>> chosen;
  for (const std::string& path : paths) {
    const auto known = std::ranges::find(runs_, path, [](const auto& run) { return run->path(); });
    if (known != runs_.end()) {
      chosen.push_back(*known);
      continue;
    }
    Result<Session> opened = Session::open(path, progress);
    if (!opened) return opened.error();
    if (opened->folder() != nullptr)
      return Error{ErrorCode::usage, path + ": is a folder of runs", "name one of them"};
    if (opened->diff() != nullptr)
      return Error{ErrorCode::usage, path + ": is a comparison of two steps, and no run", ""};
    chosen.push_back(std::make_shared<const Session>(std::move(opened).value()));
  }
  runs_ = std::move(chosen);
  return {};
}

bool RunsBeside::poll() {
  bool news = false;
  for (std::shared_ptr<const Session>& run : runs_) {
    Session now = *run;
    if (!now.poll()) continue;
    run = std::make_shared<const Session>(std::move(now));
    news = true;
  }
  return news;
}

void RunsBeside::compare_with(const Session& own) {
  std::vector<const Session*> others;
  for (const auto& run : runs_) others.push_back(run.get());
  comparison_ = others.empty() ? nullptr : std::make_shared<const Comparison>(compare(own, others));
}

}  // namespace nanquest::viewer
