/// Derivatives: what a program without an optimizer has differentiated by, and whether it has put other
/// weights in their place since.
///
/// Such a program writes to its weights in place (AttachSession::hand_written), or it computes new weights
/// from the gradients and goes on with these. The second leaves no op to know it by. What the next derivative
/// is taken by shows it: other memory of the same sizes, computed from the last gradients. Inputs that are
/// new in each pass (an adversarial example, a point of a curve) look alike, but nothing leads to them from a
/// gradient.
///
/// Several groups of weights may take turns; each is a lane, by a number of its own, and kOfModels stands for
/// the weights of modules. Other weights are kept alive until their update is known: only there their names
/// lead to what the step has read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "probe/attach/weak_tensor.h"
#include "probe/step/step_counter.h"

namespace nanquest::attach {

class Derivatives {
 public:
  /// The gradients of these weights have been computed, by ops before `ops_so_far` of the running step.
  /// `accumulated`: they were added to .grad.
  void taken(std::int64_t lane, const std::vector<at::Tensor>& weights,
             const std::vector<at::Tensor>& gradients, bool accumulated, std::size_t ops_so_far);
  /// What was taken last has had its update.
  void forget() { last_.reset(); }
  /// Whose turn the update is, for StepCounter.
  std::int64_t writer() const { return !last_ || last_->lane == kOfModels ? kByHand : -2 - last_->lane; }
  bool any() const { return last_.has_value(); }
  /// Whether `tensor` could be what came in place of one of the weights.
  bool may_replace(const at::Tensor& tensor) const;
  /// The memory of the one weight of these sizes; null if there are several.
  const c10::StorageImpl* place_of(const at::Tensor& tensor) const;
  /// Whether it has to be looked up if such a tensor was computed from the gradients.
  bool to_be_shown() const { return lanes_.at(last_->lane).replaced < kShownEnough; }
  /// What may_replace found came in place of a weight; `shown`: ops lead to it from a gradient.
  void replaced(bool shown);
  /// It did not. A lane in which that is the rule is asked no more.
  void not_replaced();

  const std::vector<WeakTensor>& gradients() const { return last_->gradients; }
  bool accumulated() const { return last_->accumulated; }
  /// The first op of the running step that may belong to the update.
  std::size_t first_op() const { return last_->first_op; }

 private:
  static constexpr std::int64_t kOfModels = -1;
  static constexpr int kShownEnough = 2, kRefusedOnce = 1;
  struct Lane {
    int replaced = 0, refused = 0;
  };
  struct Weight {
    const c10::StorageImpl* memory;
    WeakTensor tensor;  ///< keeps the address from being used again
    c10::Storage held;  ///< empty for a module's
    at::ScalarType type;
    std::vector<std::int64_t> sizes;
  };
  struct Last {
    std::int64_t lane;
    std::vector<Weight> weights;
    std::unordered_set<const c10::StorageImpl*> memory;  ///< of the weights
    std::vector<WeakTensor> gradients;
    bool accumulated;
    std::size_t first_op;
  };
  std::unordered_map<std::int64_t, Lane> lanes_;
  std::optional<Last> last_;
};

}  // namespace nanquest::attach
