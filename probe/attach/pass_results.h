/// PassResults: what the forward passes of a step gave, as far as the ops tell: the number that is their
/// loss, most likely, and whether the program still holds what it was computed from.
///
/// A bad pass after which another one begins, before any backward, is in doubt: was it thrown away, or is the
/// other's backward its own as well? A loop that leaves a bad loss out and two passes of a discriminator look
/// alike until backward begins. One thread.
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
  /// What an op gave; what backward computes is left out.
  void note(c10::ArrayRef<const c10::IValue> outputs);
  /// What a pass gave to the program.
  void made(const at::Tensor& result) { graph_ = WeakGraph(result); }
  /// A gradient was taken that is differentiated again: the last number was what it was taken of.
  void inner_gradient();

  /// The last number; undefined if there was none.
  at::Tensor number() const;
  /// Whether it is NaN or Inf, as far as that can be known without waiting for a device. The sum over a
  /// meta-learner's tasks is bad from one of them on, and not given up for that.
  bool bad() const;
  /// The program holds what the last number was computed from.
  bool number_held() const { return last_.graph.held(); }
  /// The program holds what one of the passes gave, as it holds those of a rollout.
  bool held() const { return graph_.held(); }

  /// The last pass is in doubt; these are its samples.
  void doubt(std::vector<std::string> samples) { doubt_ = {last_, std::move(samples)}; }
  bool in_doubt() const { return doubt_.has_value(); }
  /// The program holds what the pass in doubt was computed from.
  bool doubtful_held() const { return doubt_->number.graph.held(); }
  /// Backward, which starts at `roots`, is that of the pass in doubt as well. A loss that is bad itself is
  /// judged with its gradients, however the passes hang together.
  bool doubtful_shares(const std::vector<at::Tensor>& roots) const;
  /// Nothing is in doubt any more. Its samples.
  std::vector<std::string> settle();
  /// The pass in doubt was thrown away: its number is the last one again. Its samples.
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
