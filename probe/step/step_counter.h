/// StepCounter: which step is it? Found from which weights are updated when.
///
/// A step ends when a weight that was written in it is about to be written again. So a program with one
/// optimizer has one step per update. A program with several optimizers for several parts of a model has one
/// step for all of them together, and so has a pair of networks that train each other in turn. A part that is
/// updated less often than another one (beside a critic that is trained five times as often) shares the step
/// of the update before it. A part that begins to train after the others have trained alone for long shares no
/// step with them: they may be nets that are trained one after the other. What a program writes by hand between
/// gradients and an optimizer's update (a weight that it repairs, a decay) belongs to that update's step.
///
///     counter.begin();             // a forward pass begins: the step that it probably belongs to
///     counter.update({0, 1, 2});   // these weights are about to be written: the step that it is
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace nanquest {

/// Stands for all weights that a program writes by hand.
inline constexpr std::int64_t kByHand = -1;

class StepCounter {
 public:
  /// Number of the running step, from 0. Between an update and the next `begin`: the number of the update's
  /// step.
  std::int64_t step() const { return step_; }
  /// Steps that were completed by an update or given up.
  std::int64_t made() const { return step_ + (open_ ? 1 : 0); }

  /// What runs now comes after the last update. Returns the step's number, judged by earlier rounds.
  std::int64_t begin();
  /// `weights` (numbers unique per weight) are about to be written. Returns the step's number.
  std::int64_t update(const std::vector<std::int64_t>& weights);
  /// Whether more than one optimizer has written, each in its turn.
  bool several() const { return next_.size() > 1; }
  /// The program gave the step up without an update, but its loop went on.
  void give_up();

 private:
  bool written_in(const std::vector<std::int64_t>& weights, std::int64_t step) const;

  std::int64_t step_ = 0;
  bool open_ = false;     ///< step_ had an update
  bool guessed_ = false;  ///< `begin` took a new step, but no update has confirmed it yet
  std::int64_t newest_ = 0;  ///< the step in which a part was updated for the first time, the last such step
  std::int64_t late_ = -2;   ///< … if the others had trained alone for long before
  std::int64_t last_ = 0;
  std::unordered_map<std::int64_t, std::int64_t> written_;  ///< weight -> step in which it was last written
  std::unordered_map<std::int64_t, std::int64_t>
      next_;  ///< first weight of an update -> that of the update after it
};

}  // namespace nanquest
