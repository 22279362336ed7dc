#include "replay/rewind/tape_hooks.h"

#include <ATen/ATen.h>

#include <utility>

namespace nanquest {

void TapeHooks::after(std::int32_t op, Action action) {
  after_[op].push_back(std::move(action));
}

void TapeHooks::before(std::int32_t op, Look look) {
  before_[op].push_back(std::move(look));
}

void TapeHooks::put_into(RunOptions& options) const {
  for (const auto& [op, looks] : before_)
    options.edit.op_edit[op] = [&all = looks](std::vector<c10::IValue>& stack) {
      for (const Look& look : all) look(stack);
      return false;  // called while it runs
    };
  for (const auto& [op, actions] : after_)
    options.edit.output_edit[op] = [&all = actions](Written& written) {
      for (const Action& action : all) action(written);
    };
}

at::Tensor whole_memory(const at::Tensor& part) {
  const auto count = static_cast<std::int64_t>(part.storage().nbytes() / part.element_size());
  return at::empty({0}, part.options()).set_(part.storage(), 0, {count}, {1});
}

}  // namespace nanquest
