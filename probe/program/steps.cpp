#include "probe/program/steps.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "probe/attach/losses.h"
#include "probe/observe/memory_of.h"
#include "probe/observe/op_traits.h"

namespace nanquest::program {
namespace {

double number_at(c10::ArrayRef<const c10::IValue> inputs, std::size_t position) {
  return position < inputs.size() && inputs[position].isScalar() ? inputs[position].toScalar().toDouble() : 0;
}

/// The learning rate, if the op that writes the weight has it as an argument: weight.add_(step, -rate) of
/// SGD, weight.addcdiv_(gradient, …, -rate) of RMSprop and Adagrad. 0: not known.
double rate_of(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs, const at::Tensor& weight) {
  if (op.name == "aten::add_") return -number_at(inputs, 2);
  const bool from_gradient = op.name == "aten::addcdiv_" && inputs.size() > 1 && weight.grad().defined() &&
                             memory_of(inputs[1]) == weight.grad().storage().unsafeGetStorageImpl();
  return from_gradient ? -number_at(inputs, 3) : 0;
}

/// Whether a graph that reads this leaf still exists.
bool is_in_a_graph(const at::Tensor& leaf) {
  return static_cast<bool>(torch::autograd::impl::try_get_grad_accumulator(leaf));
}

}  // namespace

StepFinder::StepFinder(attach::AttachSession& session, bool records, Told told)
    : session_(session),
      records_(records),
      told_(std::move(told)),
      leaves_([this](const std::string& name, const at::Tensor& weight) {
        return session_.name_parameter(name, weight);
      }) {}

std::unique_ptr<OpFrame> StepFinder::on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  const bool own = !in_backward_ && !current_node().in_backward;
  if (own) look(op, inputs);
  auto frame = session_.on_start(op, inputs);
  // Without recording, the loss is still looked for.
  if (!frame && !records_ && own && at::GradMode::is_enabled()) return std::make_unique<OpFrame>();
  return frame;
}

void StepFinder::on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) {
  if (records_) session_.on_end(op, frame, outputs);
  if (in_backward_ || !at::GradMode::is_enabled()) return;
  for (const c10::IValue& output : outputs)
    if (output.isTensor()) note_number(output.toTensor());
}

std::unique_ptr<OpFrame> StepFinder::on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                                   c10::ArrayRef<const c10::IValue> inputs) {
  return records_ ? session_.on_saved_copy(copy, outer, inputs) : nullptr;
}

void StepFinder::note_number(const at::Tensor& output) {
  if (!output.defined() || output.numel() != 1 || !output.requires_grad() || !output.is_floating_point())
    return;
  if (!output.grad_fn()) return;
  numbers_[next_number_++ % numbers_.size()] = {output.grad_fn().get(), output.variable_data()};
}

void StepFinder::look(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (!inputs.empty() && !op.argument_written.empty() && op.argument_written[0] &&
      write(op, inputs[0], inputs))
    return;
  if (updating_) {
    const auto last_time = updates_.find(first_written_);
    if (last_time != updates_.end() && update_.writes >= last_time->second.writes) end_update();
  }
  if (!at::GradMode::is_enabled()) return;
  for (const c10::IValue& input : inputs) {
    if (input.isTensor()) {
      if (Leaves::is_leaf(input.toTensor())) read(input.toTensor());
    } else if (input.isTensorList()) {
      for (const at::Tensor& each : input.toTensorVector())
        if (Leaves::is_leaf(each)) read(each);
    }
  }
}

bool StepFinder::write(const OpTraits& op, const c10::IValue& first,
                       c10::ArrayRef<const c10::IValue> inputs) {
  const c10::StorageImpl* memory = memory_of(first);
  if (!memory || !leaves_.holds(memory)) return false;
  const at::Tensor weight = leaves_.at(memory);
  if (!updating_) {
    // A write without a gradient is no update: a copy of the weights that follows them, an initialisation.
    if (!has_gradients_ || !weight.defined() || (in_grad_ && !weight.grad().defined())) {
      // An op that always follows an update (a clamp) is waited for the next time.
      if (const auto made = updates_.find(first_written_);
          !has_gradients_ && made != updates_.end() && made->second.written.count(memory))
        ++made->second.writes;
      return true;
    }
    begin_update(memory, rate_of(op, inputs, weight));
  }
  ++update_.writes;
  update_.written.insert(memory);
  return true;
}

void StepFinder::read(const at::Tensor& leaf) {
  leaves_.meet(leaf);
  if (updating_) end_update();
  if (!passing_) {
    pass_leaf_ = leaf.unsafeGetTensorImpl();
    begin_pass();
  } else if (pass_leaf_ == leaf.unsafeGetTensorImpl() && !is_in_a_graph(leaf)) {
    begin_pass();  // the result of the last pass was not used: it was an evaluation, or the program gave it
                   // up
  }
}

void StepFinder::begin_pass() {
  passing_ = true;
  if (has_gradients_ && in_grad_ && leaves_.all_cleared()) {
    has_gradients_ = false;
    session_.gradients_cleared();
  }
  told_(session_.begin_forward());
}

void StepFinder::backward_begins(const torch::autograd::edge_list& roots, bool accumulates, bool again) {
  const ObserverPause pause;
  in_backward_ = true;
  if (again && !accumulates) return;
  if (updating_) end_update();
  if (!passing_ && !has_gradients_) begin_pass();
  std::vector<at::Tensor> losses;
  for (const torch::autograd::Edge& root : roots)
    for (const Number& number : numbers_)
      if (number.made_by && number.made_by == root.function.get()) {
        losses.push_back(number.value);
        break;
      }
  session_.begin_backward(losses, accumulates);
}

void StepFinder::backward_ends(bool accumulates, bool again) {
  const ObserverPause pause;
  in_backward_ = false;
  if (again && !accumulates) return session_.inner_gradient();
  session_.end_backward();
  numbers_ = {};
  passing_ = false;
  has_gradients_ = true;
  in_grad_ = accumulates;
  leaves_.look_again();
}

void StepFinder::begin_update(const c10::StorageImpl* first, double rate) {
  leaves_.name_those_with_gradients();
  updating_ = true;
  passing_ = has_gradients_ = false;
  first_written_ = first;
  update_ = {};
  const auto last_time = updates_.find(first);
  auto [tensors, numbers] =
      leaves_.weights(last_time == updates_.end() ? Memories{} : last_time->second.written);
  told_(session_.before_update({.lr = rate}, {std::move(tensors), std::move(numbers)},
                               /*gradients_follow=*/false));
}

void StepFinder::end_update() {
  updating_ = false;
  updates_[first_written_] = std::move(update_);
  told_(session_.after_update());
}

void StepFinder::program_ends() {
  if (updating_) end_update();
}

}  // namespace nanquest::program
