#include "trainer/parallel/process_group.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace nanquest::trainer {
namespace {

class OfProcessGroup final : public Group {
 public:
  OfProcessGroup(c10::intrusive_ptr<c10d::ProcessGroup> group, ProcessGroupOptions options)
      : group_(std::move(group)), options_(std::move(options)) {}
  ~OfProcessGroup() override {
    group_.reset();
    if (options_.leave) options_.leave();
  }

  std::int32_t rank() const override { return group_->getRank(); }
  std::int32_t size() const override { return group_->getSize(); }
  std::int32_t local_rank() const override { return options_.local_rank; }
  std::int32_t local_size() const override { return options_.local_size; }

  void sum(std::vector<at::Tensor> tensors) override {
    const at::NoGradGuard no_grad;
    c10d::AllreduceCoalescedOptions options;
    options.reduceOp = c10d::ReduceOp::SUM;
    group_->allreduce_coalesced(tensors, options)->wait();
  }
  void largest(std::vector<at::Tensor> tensors) override {
    const at::NoGradGuard no_grad;
    c10d::AllreduceCoalescedOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    group_->allreduce_coalesced(tensors, options)->wait();
  }
  void take_first(std::vector<at::Tensor> tensors) override {
    const at::NoGradGuard no_grad;
    for (const at::Tensor& t : tensors) {
      std::vector<at::Tensor> one{t};
      group_->broadcast(one)->wait();
    }
  }
  std::int64_t least(std::int64_t value) override {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> one{at::full({1}, value, at::TensorOptions(options_.device).dtype(at::kLong))};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MIN;
    group_->allreduce(one, options)->wait();
    return one.front().item<std::int64_t>();
  }
  void meet() override { (void)least(0); }
  void end_all(int exit_code) override {
    if (options_.end_all) options_.end_all(exit_code);
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  ProcessGroupOptions options_;
};

}  // namespace

std::unique_ptr<Group> group_of(c10::intrusive_ptr<c10d::ProcessGroup> group, ProcessGroupOptions options) {
  return std::make_unique<OfProcessGroup>(std::move(group), std::move(options));
}

}  // namespace nanquest::trainer
