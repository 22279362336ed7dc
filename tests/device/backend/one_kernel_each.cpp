// Operators that the CPU computes with one kernel are one kernel here too, as on a GPU: without this they would
// fall apart into smaller ones (layer norm into its formula, _foreach_add_ into one addition a tensor).
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

#include "tests/device/backend/launch.h"
#include "tests/device/backend/one_kernel_each.h"

namespace nqdev {
namespace {

bool takes_tensors(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& a) {
    return a.type()->isSubtypeOf(*c10::TensorType::get()) ||
           a.type()->str().find("Tensor[]") != std::string::npos;
  });
}

/// It hands out memory of an argument: never a kernel.
bool is_view(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(),
                     [](const c10::Argument& r) { return r.alias_info() && !r.alias_info()->isWrite(); });
}

bool is_one_kernel(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  if (!name.name.starts_with("aten::") || op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1))
    return false;
  const bool known =
      op.hasKernelForDispatchKey(c10::DispatchKey::CPU) || name.name.starts_with("aten::_foreach_");
  return known && takes_tensors(op.schema()) && !is_view(op.schema());
}

}  // namespace

void register_one_kernel_each() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                                __LINE__);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !op->hasSchema() || !is_one_kernel(*op)) continue;
    const std::string own =
        name.name.substr(6) + (name.overload_name.empty() ? "" : "." + name.overload_name);
    library.impl(own.c_str(), torch::CppFunction::makeFromBoxedFunction<&launch>());
  }
}

}  // namespace nqdev
