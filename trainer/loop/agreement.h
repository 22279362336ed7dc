/// Agreement: what the ranks of a run settle between two steps: whether each has its batch, whether one of
/// them was asked to stop, and whether all hold the same. A run of one rank settles it at once.
#pragma once

#include <atomic>
#include <string>

#include "trainer/loop/rank_work.h"

namespace nanquest::trainer {

/// One thread, but for `request_stop`; every rank makes the same calls in the same order.
class Agreement {
 public:
  /// Both must outlive it.
  Agreement(Group& ranks, RankWork& rank_work) : ranks_(ranks), rank_work_(rank_work) {}

  /// Asks for a stop with `exit_code`, not 0. Callable from a signal handler.
  void request_stop(int exit_code) { stop_code_ = exit_code; }
  /// What a stop was asked for with, 0 if none was; of several ranks what they agreed on, after `ready`.
  int stop_code() const { return stop_code_; }
  /// Whether the run is to stop before its next batch: of several ranks, one is asked before the others hear
  /// of it, so they have to agree first.
  bool stops() const { return ranks_.alone() ? stop_code_ != 0 : stop_agreed_; }
  /// Whether several ranks have agreed to stop.
  bool stop_agreed() const { return stop_agreed_; }

  /// Given whether this rank has its batch: ok if all ranks have theirs, else the error of the lowest that
  /// has none. A rank that was asked to stop tells it to all.
  Status ready(const Status& batch);
  /// Whether `text`, which says which run and where in it, and the weights are the same on all ranks;
  /// `internal` if not, naming `step` on the first rank alone.
  Status alike(std::string text, const NamedTensors& weights, std::int64_t step);
  /// Whether the last error was that of all ranks, so that none waits for this one.
  bool ended_together() const { return ended_together_; }

 private:
  Group& ranks_;
  RankWork& rank_work_;
  std::atomic<int> stop_code_{0};
  bool stop_agreed_ = false, ended_together_ = false;
};

}  // namespace nanquest::trainer
