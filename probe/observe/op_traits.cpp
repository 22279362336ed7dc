#include "probe/observe/op_traits.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/autocast_mode.h>
#include <c10/core/TensorOptions.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "probe/trace/collectives.h"
#include "probe/trace/op_facts.h"

namespace nanquest {
namespace {

/// Every LibTorch has the operators of these namespaces.
bool is_foreign(std::string_view name) {
  for (const std::string_view space : {"aten::", "prim::", "quantized::", "_quantized::", "sparse::", "mkl::",
                                       "mkldnn::", "mkldnn_prepacked::", "onednn::", "prepacked::"})
    if (name.substr(0, space.size()) == space) return false;
  return !is_collective(name) && !awaits_collective(name);
}

bool composite_for(const c10::OperatorHandle& handle, c10::DispatchKey backend, c10::DispatchKey autograd) {
  return handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !handle.hasKernelForDispatchKey(backend) && !handle.hasKernelForDispatchKey(autograd);
}

std::unique_ptr<OpTraits> make_traits(const c10::OperatorHandle& handle) {
  auto traits = std::make_unique<OpTraits>(handle);
  const c10::FunctionSchema& schema = handle.schema();
  traits->name = schema.name();
  traits->overload = schema.overload_name();
  traits->composite_cpu = composite_for(handle, c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU);
  traits->autocast_cpu = handle.hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU);
  traits->accelerator = at::getAccelerator().value_or(c10::kCPU);
  if (traits->accelerator != c10::kCPU) {
    const auto backend = c10::computeDispatchKey(std::nullopt, std::nullopt, traits->accelerator);
    const auto autograd = c10::toRuntimePerBackendFunctionalityKey(c10::DispatchKey::AutogradFunctionality,
                                                                   c10::toBackendComponent(backend));
    traits->composite_device = composite_for(handle, backend, autograd);
    traits->autocast_device =
        at::autocast::is_autocast_available(traits->accelerator) &&
        handle.hasKernelForDispatchKey(
            at::autocast::get_autocast_dispatch_key_from_device_type(traits->accelerator));
  }
  traits->for_the_allocator = is_for_the_allocator(traits->name);
  traits->seeded = handle.hasTag(at::Tag::nondeterministic_seeded);
  traits->uninitialised = returns_uninitialised(traits->name);
  traits->collective = is_collective(traits->name);
  traits->awaits = awaits_collective(traits->name);
  traits->foreign = is_foreign(traits->name);
  traits->unknown_elsewhere = traits->foreign && !is_fsdp_copy(traits->name);
  traits->gives_what_it_wrote = returns_what_it_wrote(traits->name);
  traits->opaque = traits->collective || traits->name == kCompiledRegion;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const bool mutated = argument.alias_info() && argument.alias_info()->isWrite();
    const ArgumentUse use = argument_use(traits->name, {argument.name(), i, mutated, argument.is_out()});
    traits->argument_read.push_back(use.read);
    traits->argument_written.push_back(use.written);
    traits->argument_overwritten.push_back(use.written && !use.read);
  }
  traits->in_place = !traits->argument_written.empty() && traits->argument_written[0] && !traits->opaque;
  traits->copies = traits->name == "aten::clone";
  traits->moves = traits->name == "aten::copy_";
  for (const c10::Argument& result : schema.returns()) {
    const auto* alias = result.alias_info();
    traits->returns.push_back(!alias ? ReturnKind::fresh
                                     : (alias->isWrite() ? ReturnKind::written : ReturnKind::view));
  }
  traits->views = !traits->opaque && !traits->foreign && !traits->returns.empty() &&
                  std::all_of(traits->returns.begin(), traits->returns.end(),
                              [](ReturnKind kind) { return kind == ReturnKind::view; }) &&
                  std::none_of(traits->argument_written.begin(), traits->argument_written.end(),
                               [](bool w) { return w; });
  return traits;
}

struct CachedTraits {
  const void* key;
  const OpTraits* traits;
};

/// This thread's cache entry for the traits of the operator with this name.
CachedTraits& nearest(const void* key) {
  constexpr std::size_t kPlaces = 1024;
  constinit thread_local CachedTraits places[kPlaces]{};
  const auto bits = reinterpret_cast<std::uintptr_t>(key) >> 4;
  return places[(bits ^ (bits >> 10)) % kPlaces];
}

}  // namespace

bool OpTraits::is_frontier() const {
  if (for_the_allocator) return false;
  // Observers do not know the backend of a call. A composite on a CPU is one on an accelerator, except for a
  // handful of operators. Those do not count as composite if this process has an accelerator.
  if (composite_cpu && (composite_device || accelerator == c10::kCPU)) return false;
  if (autocast_cpu && at::autocast::is_autocast_enabled(at::kCPU)) return false;
  if (autocast_device && at::autocast::is_autocast_enabled(accelerator)) return false;
  return true;
}

const OpTraits* traits_of(const at::RecordFunction& fn) {
  // The schema owns the name's characters, so the pointer identifies the operator.
  const void* key = fn.name();
  CachedTraits& near = nearest(key);
  if (near.key == key) return near.traits;

  const auto name = fn.operator_name();
  if (!name) return nullptr;
  const auto handle = c10::Dispatcher::singleton().findOp(*name);
  if (!handle) return nullptr;

  const OpTraits* traits = &traits_of(*handle);
  near = {key, traits};
  return traits;
}

const OpTraits& traits_of(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static std::unordered_map<const void*, std::unique_ptr<OpTraits>> all;
  const std::lock_guard lock(mutex);
  auto& slot = all[op.schema().name().data()];
  if (!slot) slot = make_traits(op);
  return *slot;
}

std::string argument_name(const std::string& op, const std::string& overload, std::int32_t position) {
  const auto handle = c10::Dispatcher::singleton().findSchema({op, overload});
  if (!handle || position < 0) return "";
  const auto& arguments = handle->schema().arguments();
  const auto at = static_cast<std::size_t>(position);
  return at < arguments.size() ? arguments[at].name() : "";
}

}  // namespace nanquest
