#include "trainer/parallel/process_group.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace nanquest::trainer {
namespace {

/// A backend's message, without the source location before it and the advice after it.
std::string words_of(const std::exception& e) {
  const auto* torch = dynamic_cast<const c10::Error*>(&e);
  std::string text = torch != nullptr ? torch->what_without_backtrace() : e.what();
  if (text.starts_with('[')) text.erase(0, std::min(text.size(), text.find(']') + 2));
  return text.substr(0, std::min(text.find('\n'), text.find(". ")));
}

/// Starts an operation and waits. Exceptions of a backend are rethrown with their meaning here.
template <class Begin>
void with_all(const Begin& begin) {
  const at::NoGradGuard no_grad;
  try {
    begin()->wait();
  } catch (const std::exception& e) {
    throw std::runtime_error("the other ranks can't be reached: " + words_of(e));
  }
}

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

  void sum(std::vector<at::Tensor> tensors) override { reduce(tensors, c10d::ReduceOp::SUM); }
  void largest(std::vector<at::Tensor> tensors) override { reduce(tensors, c10d::ReduceOp::MAX); }
  void take_first(std::vector<at::Tensor> tensors) override {
    for (const at::Tensor& t : tensors) {
      std::vector<at::Tensor> one{t};
      with_all([&] { return group_->broadcast(one); });
    }
  }
  std::int64_t least(std::int64_t value) override {
    std::vector<at::Tensor> one{at::full({1}, value, at::kLong)};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MIN;
    with_all([&] { return group_->allreduce(one, options); });
    return one.front().item<std::int64_t>();
  }
  void meet() override { (void)least(0); }
  void end_all(int exit_code) override {
    if (options_.end_all) options_.end_all(exit_code);
  }

 private:
  void reduce(std::vector<at::Tensor>& tensors, c10d::ReduceOp::RedOpType how) {
    c10d::AllreduceCoalescedOptions options;
    options.reduceOp = how;
    with_all([&] { return group_->allreduce_coalesced(tensors, options); });
  }

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  ProcessGroupOptions options_;
};

}  // namespace

std::unique_ptr<Group> group_of(c10::intrusive_ptr<c10d::ProcessGroup> group, ProcessGroupOptions options) {
  return std::make_unique<OfProcessGroup>(std::move(group), std::move(options));
}

}  // namespace nanquest::trainer
