#include "tests/device/backend/launch.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tests/device/backend/arguments.h"
#include "tests/device/backend/generator.h"
#include "tests/device/backend/memory.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

namespace nqdev {
namespace {

using c10::IValue;

c10::DispatchKeySet everything_above_kernels() {
  using c10::DispatchKey;
  return c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset |
         c10::DispatchKeySet({DispatchKey::Python, DispatchKey::PythonTLSSnapshot, DispatchKey::PreDispatch,
                              DispatchKey::PythonDispatcher, DispatchKey::Functionalize,
                              DispatchKey::FuncTorchDynamicLayerFrontMode,
                              DispatchKey::FuncTorchDynamicLayerBackMode});
}

/// A call on its way to the device.
struct Call {
  c10::OperatorHandle op;
  std::vector<IValue> arguments;  ///< as the program gave them
  int device = 0;
  std::optional<Draw> draw;
};

/// Random numbers that the call may draw: the size of what it returns or fills.
std::uint64_t numbers_of(const std::vector<IValue>& values) {
  std::uint64_t most = 1;
  for (const IValue& value : values)
    each_tensor_in(value, [&](const at::Tensor& t) {
      if (t.defined()) most = std::max(most, static_cast<std::uint64_t>(t.numel()));
    });
  return most;
}

bool is_seeded(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::nondeterministic_seeded);
}

at::Generator generator_of(const std::vector<IValue>& arguments) {
  for (const IValue& value : arguments)
    if (value.isGenerator()) return value.toGenerator();
  return {};
}

/// Runs the CPU's kernel on the stack.
void compute(const c10::OperatorHandle& op, const std::optional<Draw>& draw, std::vector<IValue>& stack) {
  if (!draw) return op.callBoxed(stack);
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 0; i < stack.size(); ++i)
    if (is_generator(arguments[i])) stack[i] = generator_at(*draw);
  with_default_generator_at(*draw, [&] { op.callBoxed(stack); });
}

/// What the call would return, as meta tensors; nothing if that can't be said without its values.
std::optional<std::vector<IValue>> foretold(const Call& call) {
  const auto& returns = call.op.schema().returns();
  const bool tensors = std::all_of(returns.begin(), returns.end(), [](const c10::Argument& r) {
    return r.type()->isSubtypeOf(*c10::TensorType::get()) ||
           r.type()->isSubtypeOf(*c10::ListType::ofTensors());
  });
  if (!tensors || call.op.hasTag(at::Tag::dynamic_output_shape) ||
      call.op.hasTag(at::Tag::data_dependent_output))
    return std::nullopt;
  std::vector<IValue> stack = converted(call.arguments, Converter::to_meta());
  try {
    call.op.callBoxed(stack);
  } catch (const c10::Error&) {  // no meta kernel, or wrong arguments: the CPU's kernel will say
    return std::nullopt;
  }
  for (const IValue& value : stack)
    if (!all_meta(value)) return std::nullopt;
  return stack;
}

/// The k-th returned value if it is an argument that was written.
std::optional<IValue> returned_argument(const Call& call, std::size_t k) {
  const auto* alias = call.op.schema().returns()[k].alias_info();
  if (!alias || !alias->isWrite()) return std::nullopt;
  const auto& arguments = call.op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (const auto* other = arguments[i].alias_info(); other && other->beforeSets() == alias->beforeSets())
      return call.arguments[i];
  return std::nullopt;
}

/// The host waits, the CPU's kernel runs at once.
void run_now(const Call& call, torch::jit::Stack* stack) {
  synchronise(call.device, current_stream(call.device));
  std::vector<IValue> values, written;
  as_the_device([&] {
    values = converted(call.arguments, Converter::to_copies());
    written = values;
    compute(call.op, call.draw, values);
    write_back(call.op.schema(), written, call.arguments);
  });
  for (std::size_t k = 0; k < values.size(); ++k)
    torch::jit::push(*stack, returned_argument(call, k).value_or(to_device(values[k], call.device)));
}

/// The CPU's kernel runs when the stream gets there.
void run_later(const Call& call, const std::vector<IValue>& outcome, torch::jit::Stack* stack) {
  std::vector<IValue> results;
  for (std::size_t k = 0; k < outcome.size(); ++k) {
    std::optional<IValue> argument = returned_argument(call, k);
    if (argument && argument->isTensor() && argument->toTensor().sizes() != outcome[k].toTensor().sizes())
      argument->toTensor().resize_(outcome[k].toTensor().sizes());
    results.push_back(argument ? *argument : like_meta(outcome[k], call.device));
  }
  // Views are made last: an out= argument may have got other memory.
  std::vector<IValue> views = converted(call.arguments, Converter::to_views());
  std::vector<IValue> targets;
  for (std::size_t k = 0; k < results.size(); ++k)
    targets.push_back(returned_argument(call, k) ? IValue()
                                                 : converted({results[k]}, Converter::to_views())[0]);
  // It holds only addresses, like kernels: memory that other streams use must be recorded for them before it
  // is freed.
  put_kernel(call.device,
             [op = call.op, draw = call.draw, views = std::move(views), targets = std::move(targets)] {
               std::vector<IValue> values = views;
               compute(op, draw, values);
               for (std::size_t k = 0; k < targets.size(); ++k) copy_into(targets[k], values[k]);
             });
  for (IValue& result : results) torch::jit::push(*stack, std::move(result));
}

}  // namespace

void as_the_device(const std::function<void()>& work) {
  const std::lock_guard lock(mutex());
  const Unlocked open;
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unseen;
  const c10::impl::ExcludeDispatchKeyGuard below(everything_above_kernels());
  work();
}

void put_kernel(int device, std::function<void()> kernel) {
  check_alive();
  count(Counter::launches);
  if (fails_now(Failure::launch)) return set_pending_error("launch failure");
  enqueue(device, current_stream(device), [kernel = std::move(kernel)] { as_the_device(kernel); });
}

void launch(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
                              "nqdev: the CPU, which computes for it, has no kernel for ",
                              op.operator_name());
  const std::size_t count = op.schema().arguments().size();
  Call call{op, torch::jit::pop(*stack, count), current_device(), {}};
  for (const IValue& value : call.arguments)
    if (const auto device = device_in(value)) {
      call.device = *device;
      break;
    }
  const c10::DeviceGuard guard(
      c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(call.device)));
  std::optional<std::vector<IValue>> outcome;
  {
    const at::NoGradGuard no_grad;
    const at::DisableRecordFunctionGuard unseen;
    const c10::impl::ExcludeDispatchKeyGuard below(everything_above_kernels());
    outcome = foretold(call);
  }
  if (is_seeded(call.op))
    call.draw = reserve(generator_of(call.arguments), call.device,
                        std::max(numbers_of(call.arguments), outcome ? numbers_of(*outcome) : 1));
  if (outcome)
    run_later(call, *outcome, stack);
  else
    run_now(call, stack);
}

}  // namespace nqdev
