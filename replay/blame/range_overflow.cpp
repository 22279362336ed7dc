#include "replay/blame/range_overflow.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <vector>

#include "probe/observe/op_traits.h"
#include "probe/tensor/one_up.h"
#include "probe/trace/births.h"

namespace nanquest {
namespace {

/// How far inputs are moved: so much of themselves, and so much at least.
constexpr double kStep = 1e-3;

/// The op's call in fp64, to be made again with its inputs moved.
class Call {
 public:
  Call(Lab& lab, OpId op) {
    const OpRow& row = lab.graph().op(op);
    handle_ = c10::Dispatcher::singleton().findOp({row.name, row.overload});
    if (!handle_) return;
    written_ = traits_of(*handle_).argument_written;
    RunOptions options;
    options.scan = false;
    options.stop_after = op.row();
    options.edit.op_edit[op.row()] = [&](std::vector<c10::IValue>& stack) {
      if (stack.size() == handle_->schema().arguments().size())
        base_ = raised(handle_->schema(), written_, stack, at::kDouble);
      return false;
    };
    (void)lab.run(options);
  }

  /// What comes out with every input moved by `way` steps; empty if it can't be run.
  std::vector<at::Tensor> moved(double way) const {
    if (!base_) return {};
    const auto instead = [way](const at::Tensor& t) -> at::Tensor {
      if (way == 0 || !t.is_floating_point() || t.numel() == 0 ||
          t.unsafeGetTensorImpl()->is_wrapped_number())
        return {};
      return t + way * kStep * (t.abs() + 1);
    };
    auto results =
        run_raised(*handle_, written_, raised(handle_->schema(), written_, *base_, at::kDouble, instead));
    if (!results) return {};
    return std::move(results->returned.empty() ? results->written : results->returned);
  }

 private:
  std::optional<c10::OperatorHandle> handle_;
  std::vector<bool> written_;
  std::optional<std::vector<c10::IValue>> base_;
};

}  // namespace

bool is_range_overflow(Lab& lab, const Suspect& suspect) {
  if (suspect.row || !suspect.kinds.infinite) return false;
  const OpRow& row = lab.graph().op(suspect.op);
  if (row.flags & kOpBirthFiniteAbove) return true;
  if (row.flags & (kOpSeeded | kOpOpaque | kOpHostWrite | kOpFailed | kOpUninitialised)) return false;
  if (bad_constants(lab.graph().doc(), suspect.op).infinite ||
      lab.graph().read_counts(suspect.op).total() > 0)
    return false;
  const Call call(lab, suspect.op);
  const auto here = call.moved(0), up = call.moved(1), down = call.moved(-1);
  if (here.size() != up.size() || here.size() != down.size()) return false;
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (!here[i].defined() || !here[i].is_floating_point() || here[i].sizes() != up[i].sizes() ||
        here[i].sizes() != down[i].sizes())
      continue;
    const at::Tensor stays =
        at::logical_and(at::isinf(here[i]), at::logical_and(at::isinf(up[i]), at::isinf(down[i])));
    if (stays.any().item<bool>()) return true;
  }
  return false;
}

}  // namespace nanquest
