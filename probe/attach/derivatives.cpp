#include "probe/attach/derivatives.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/attach/session.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/flow.h"

namespace nanquest::attach {

void Derivatives::taken(std::int64_t lane, const std::vector<at::Tensor>& weights,
                        const std::vector<at::Tensor>& gradients, bool accumulated, std::size_t ops_so_far) {
  last_.reset();
  const Lane& so_far = lanes_[lane];
  if (so_far.refused > kRefusedOnce + so_far.replaced) return;
  Last last{lane, {}, {}, {}, accumulated, ops_so_far};
  for (const at::Tensor& weight : weights)
    if (is_plain(weight))
      last.weights.push_back({weight.storage().unsafeGetStorageImpl(), WeakTensor(weight),
                              lane == kOfModels ? c10::Storage() : weight.storage(), weight.scalar_type(),
                              weight.sizes().vec()});
  for (const Weight& weight : last.weights) last.memory.insert(weight.memory);
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined() && is_plain(gradient)) last.gradients.emplace_back(gradient);
  if (!last.weights.empty()) last_ = std::move(last);
}

bool Derivatives::may_replace(const at::Tensor& tensor) const {
  if (!last_ || !is_plain(tensor)) return false;
  if (last_->memory.count(tensor.storage().unsafeGetStorageImpl())) return false;
  return std::any_of(last_->weights.begin(), last_->weights.end(), [&](const Weight& weight) {
    return weight.type == tensor.scalar_type() && tensor.sizes() == weight.sizes;
  });
}

const c10::StorageImpl* Derivatives::place_of(const at::Tensor& tensor) const {
  const c10::StorageImpl* found = nullptr;
  for (const Weight& weight : last_->weights) {
    if (weight.type != tensor.scalar_type() || tensor.sizes() != weight.sizes) continue;
    if (found) return nullptr;
    found = weight.memory;
  }
  return found;
}

void Derivatives::replaced(bool shown) {
  if (shown) ++lanes_[last_->lane].replaced;
}

void Derivatives::not_replaced() {
  ++lanes_[last_->lane].refused;
  last_.reset();
}

// What the session does with them.

void AttachSession::derived(std::int64_t lane, const std::vector<at::Tensor>& weights,
                            const std::vector<at::Tensor>& gradients, bool accumulated) {
  safely("a derivative", [&] {
    derivatives_.taken(lane, weights, gradients, accumulated, machine_.on_record() ? ops_so_far() : 0);
  });
}

StepAnswer AttachSession::derives(const std::vector<at::Tensor>& weights) {
  StepAnswer answer;
  safely("a derivative", [&] {
    if (machine_.stage() == StepMachine::Stage::gradients)
      for (const at::Tensor& weight : weights)
        if (replaces_weight(weight)) {
          updated_by_hand(derivatives_.first_op());
          derivatives_.forget();
          break;
        }
    answer = std::exchange(pending_, {});
  });
  return answer;
}

bool AttachSession::replaces_weight(const at::Tensor& tensor) {
  if (!derivatives_.may_replace(tensor)) return false;
  const bool look = machine_.on_record() && derivatives_.to_be_shown();
  if (look && !computed_from_gradients(tensor)) {
    derivatives_.not_replaced();
    return false;
  }
  derivatives_.replaced(/*shown=*/machine_.on_record());
  return true;
}

void AttachSession::take_over_name(const at::Tensor& tensor) {
  const c10::StorageImpl* const place = derivatives_.place_of(tensor);
  const NamedList& parameters = tensors_.names().parameters;
  for (std::size_t i = 0; place && i < parameters.size(); ++i)
    if (parameters.tensor(i).address() == place) return tensors_.put("parameter", parameters.name(i), tensor);
}

bool AttachSession::computed_from_gradients(const at::Tensor& tensor) {
  bool found = false;
  with_graph([&](const StepGraph& step, Rounds&) {
    std::vector<SlotId> from;
    for (const WeakTensor& gradient : derivatives_.gradients())
      if (const SlotId slot = step.slot(gradient.address())) from.push_back(slot);
    const SlotId slot = step.slot(tensor);
    if (from.empty() || !slot || derivatives_.first_op() >= step.step().ops.size()) return;
    found = reached_in_floats(step.graph(), from, OpId{derivatives_.first_op()})[slot];
  });
  return found;
}

void AttachSession::updated_by_hand(std::size_t first_op) {
  // A density is 0 in places, and its logarithm infinite there: no harm where the gradient is finite.
  if (derivatives_.any() && !derivatives_.accumulated() && losses_.bad()) {
    const auto& gradients = derivatives_.gradients();
    if (std::all_of(gradients.begin(), gradients.end(), [](const WeakTensor& gradient) {
          const at::Tensor values = gradient.lock();
          return values.defined() && all_finite(values);
        }))
      losses_.clear();
  }
  machine_.hand_written();
  StepAnswer answer = before_update({}, {{}, {derivatives_.writer()}}, /*gradients_follow=*/false);
  trace_.update_begins = trace_.update_ends = first_op;  // nobody says where the next part begins
  if (std::exchange(answer.skip, false)) answer.told.push_back({Fact::update_not_skipped});
  if (answer.incident || !answer.told.empty()) pending_ = std::move(answer);
}

}  // namespace nanquest::attach
