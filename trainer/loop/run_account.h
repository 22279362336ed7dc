/// RunAccount: what a run reports of itself: at its end as a Summary, and in each checkpoint as a Story, so
/// that a resumed run reports the whole of it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "trainer/loop/config.h"

namespace nanquest::trainer {

class RunAccount {
 public:
  /// `event`: a step that was applied.
  void add(const StepEvent& event);
  /// An attempt at `step` that failed for good; `snapshot` is its file, "" if there is none.
  void add_incident(std::int64_t step, const std::string& snapshot);
  /// `held_out`, not empty: what an evaluation gave.
  void add(const std::vector<Metric>& held_out);

  /// For a checkpoint; dropped samples and the loss scale's history are added by those that know them.
  Story story() const;
  /// Goes on from an earlier process's.
  void take_up(const Story& story);
  /// Notes the mean of the last losses in `summary`.
  void close();

  Summary summary;

 private:
  double recent_mean() const;

  std::deque<double> recent_losses_;  ///< of the last applied steps, at most 20
};

}  // namespace nanquest::trainer
