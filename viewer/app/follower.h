/// Follower: looks for what a run has written while its window is open.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>

#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// Starts a look for news at most once a second, and for at most a twentieth of the time.
class Follower {
  using Clock = std::chrono::steady_clock;

 public:
  void look(UiState& state) {
    const auto now = Clock::now();
    if (!state.follow || now < next_ || state.loader->busy() ||
        (state.session.is_nothing() && state.session.folder() == nullptr))
      return;
    next_ = now + std::max<Clock::duration>(std::chrono::seconds(1), spent_->load() * 20);
    const auto poll = [spent = spent_](Session& session) {
      const auto start = Clock::now();
      const bool news = session.poll();
      *spent = Clock::now() - start;
      return news;
    };
    const auto tell = [&state] { state.message = state.session.lost_of_any().empty() ? "New data" : ""; };
    state.read({"news", poll, tell, false, /*quiet=*/true});
  }

 private:
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
  /// At the last look; the loader's thread may still look when this object is gone.
  std::shared_ptr<std::atomic<Clock::duration>> spent_ =
      std::make_shared<std::atomic<Clock::duration>>(Clock::duration::zero());
};

}  // namespace nanquest::viewer
