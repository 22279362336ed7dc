/// Replaying: nanquest-replay, run on an incident by the window. One run at a time.
///
///     Replaying replaying;
///     replaying.start(ReplayTask::replay, snapshot, "step 131");
///     // every frame:
///     if (replaying.look()) draw(replaying.doing());
///     if (replaying.take_ended()) session.poll();   // what it wrote lies beside the snapshot
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "viewer/model/child.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// replay: verify, diagnose, try fixes. rewind: the steps before, from the file's tape. repro: a program that
/// runs the culprit alone.
enum class ReplayTask : std::uint8_t { replay, rewind, repro };

class Replaying {
 public:
  /// Starts nanquest-replay on a snapshot; `what` names it: "step 131". `usage` while a run is in progress;
  /// `unsupported` if the program is neither in the folder NANQUEST_BIN, nor beside this program, nor on
  /// PATH. The error is the outcome too.
  Status start(ReplayTask task, const std::string& snapshot, const std::string& what);
  /// Reads what it printed, and notes its end. True if there is anything new to draw. Never waits.
  bool look();
  /// Ends it; what it had not written is lost.
  void cancel();
  bool runs() const { return child_ != nullptr; }
  /// "replaying step 131, 12 s: verifying: the step as recorded"; "" if none runs.
  const std::string& doing() const { return doing_; }
  /// True once after a run ended: its files can be read.
  bool take_ended();
  /// How the last run ended, in a sentence, with a way out if it failed; "" before any.
  const std::string& outcome() const { return outcome_; }
  bool failed() const { return failed_; }
  /// True if the run, or the last one, was of this snapshot.
  bool is_of(const std::string& snapshot) const { return !given_.empty() && snapshot == given_; }

 private:
  void finish();
  std::string command() const;

  std::unique_ptr<Child> child_;
  ReplayTask task_ = ReplayTask::replay;
  std::string given_, snapshot_, what_, doing_, outcome_;
  std::chrono::steady_clock::time_point began_;
  bool cancelled_ = false, failed_ = false, ended_ = false;
};

/// The open incident has a snapshot that can be run again.
bool may_replay(const Session& session);
/// The same, and a replay would show more: there is no verdict, or no values in fp32 and fp64.
bool wants_replay(const Session& session);

}  // namespace nanquest::viewer
