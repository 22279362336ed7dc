#include "replay/lab/moved_call.h"

#include <utility>

#include "probe/observe/op_traits.h"
#include "probe/tensor/one_up.h"

namespace nanquest {

MovedCall::MovedCall(const OpRow& op, const std::vector<c10::IValue>& arguments) {
  const auto handle = c10::Dispatcher::singleton().findOp({op.name, op.overload});
  if (!handle || handle->schema().arguments().size() != arguments.size()) return;
  const OpTraits& traits = traits_of(*handle);
  if (traits.seeded || traits.uninitialised || traits.opaque || traits.collective) return;
  written_ = traits.argument_written;
  base_ = raised(handle->schema(), written_, arguments, at::kDouble);
  handle_ = handle;
}

std::vector<at::Tensor> MovedCall::run(const std::function<at::Tensor(const at::Tensor&)>& instead) const {
  if (!handle_) return {};
  auto results =
      run_raised(*handle_, written_, raised(handle_->schema(), written_, base_, at::kDouble, instead));
  if (!results) return {};
  return std::move(results->returned.empty() ? results->written : results->returned);
}

bool can_be_moved(const at::Tensor& t) {
  return t.defined() && t.scalar_type() == at::kDouble && t.numel() > 0 &&
         !t.unsafeGetTensorImpl()->is_wrapped_number();
}

}  // namespace nanquest
