/// PassResults: what the forward passes of a step returned, as far as the ops show it: the number that is
/// most likely their loss, and whether the program still holds what it was computed from.
///
/// If another pass begins after a bad one, before any backward, the bad pass is in doubt: was it thrown away,
/// or will it be part of the next backward? A loop that skips a bad loss and two passes of a discriminator
/// look alike until backward begins. One thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "probe/attach/weak_graph.h"

namespace nanquest::attach {

class PassResults {
 public:
  /// What an op returned; results of backward are ignored.
  void note(c10::ArrayRef<const c10::IValue> outputs);
  /// What a pass returned to the program.
  void made(const at::Tensor& result) { graph_ = WeakGraph(result); }
  /// A gradient was computed that is differentiated again: the last number is what it was computed from.
  void inner_gradient();

  /// The last number; undefined if there is none.
  at::Tensor number() const;
  /// Whether it is NaN or Inf, as far as this is known without waiting for a device. (In a meta-learner's sum
  /// over tasks the sum is bad from one task on, and is not given up because of that.)
  bool bad() const;
  /// Whether the program holds what the last number was computed from.
  bool number_held() const { return last_.graph.held(); }
  /// Whether the program holds a result of one of the passes, as it does in a rollout.
  bool held() const { return graph_.held(); }

  /// The last pass is in doubt; these are its samples.
  void doubt(std::vector<std::string> samples) { doubt_ = {last_, std::move(samples)}; }
  bool in_doubt() const { return doubt_.has_value(); }
  /// Whether the program holds what the pass in doubt was computed from.
  bool doubtful_held() const { return doubt_->number.graph.held(); }
  /// Whether the backward pass that starts at `roots` includes the pass in doubt. A loss that is bad itself
  /// is judged together with its gradients, however the passes are connected.
  bool doubtful_shares(const std::vector<at::Tensor>& roots) const;
  /// Nothing is in doubt any more. Returns the samples of the pass that was.
  std::vector<std::string> settle();
  /// The pass in doubt was thrown away: its number is the last one again. Returns its samples.
  std::vector<std::string> throw_away();

 private:
  struct Number {
    c10::Storage scalar;
    at::ScalarType type = at::kFloat;
    WeakGraph graph;  ///< what it was computed from
  };
  struct Doubt {
    Number number;
    std::vector<std::string> samples;
  };

  Number last_;
  WeakGraph graph_;
  bool inner_gradients_ = false;
  std::optional<Doubt> doubt_;
};

}  // namespace nanquest::attach
