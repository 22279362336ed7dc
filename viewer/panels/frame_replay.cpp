// A replay that the user starts: its actions, and what it found.
#include "viewer/panels/frame.h"

namespace nanquest::viewer {

void Ui::add_replay(std::vector<Action>& out) {
  const auto add = [&](const char* name, std::function<void()> run) {
    out.push_back({"Replay", name, 0, std::move(run)});
  };
  if (state_.replaying.runs()) return add("Cancel the replay", [this] { state_.replaying.cancel(); });
  if (!may_replay(state_.session)) return;
  add("Replay now", [this] { state_.replay(ReplayTask::replay); });
  if (state_.session.incident()->reader.has_tape())
    add("Rewind: run the steps before again", [this] { state_.replay(ReplayTask::rewind); });
  add("Write a repro of the culprit", [this] { state_.replay(ReplayTask::repro); });
}

/// The files of a replay that ended are read as soon as nothing else is.
bool Ui::look_at_replay() {
  const bool news = state_.replaying.look();
  if (state_.replaying.take_ended()) {
    unread_ = true;
    const std::string& outcome = state_.replaying.outcome();
    state_.message = outcome.substr(0, outcome.find('\n'));
  }
  const bool busy = state_.loader != nullptr && state_.loader->busy();
  if (!unread_ || busy) return news;
  unread_ = false;
  state_.read({"what replay found", [](Session& session) { return session.poll(); }});
  return true;
}

}  // namespace nanquest::viewer
