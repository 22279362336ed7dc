// Convolutions: LibTorch asks other backends for operators of their own names; the CPU computes the usual ones.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "tests/device/backend/launch.h"

namespace nqdev {
namespace {

using c10::IValue;

const c10::OperatorHandle& usual(const char* name) {
  static const auto forward = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  static const auto backward =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
  return std::string_view(name) == "forward" ? forward : backward;
}

void forward(const c10::OperatorHandle&, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  launch(usual("forward"), keys, stack);
}

/// (grad, input, weight, stride, padding, dilation, transposed, output padding, groups, mask): the usual one wants
/// the bias's shape after the weight.
void backward(const c10::OperatorHandle&, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  std::vector<IValue> arguments = torch::jit::pop(*stack, 10);
  const std::int64_t outputs = arguments[0].toTensor().size(1);
  arguments.insert(arguments.begin() + 3, IValue(c10::List<std::int64_t>({outputs})));
  for (IValue& argument : arguments) torch::jit::push(*stack, std::move(argument));
  launch(usual("backward"), keys, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&forward>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&backward>());
}

}  // namespace
}  // namespace nqdev
