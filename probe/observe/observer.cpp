#include "probe/observe/observer.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "probe/base/pooled.h"
#include "probe/observe/hook_ops.h"
#include "probe/observe/node_names.h"
#include "probe/observe/passes_through.h"

namespace nanquest {
namespace {

std::atomic<OpSink*> active_sink{nullptr};

struct Node {
  const NodeName* name;
  std::int64_t sequence;
  std::uint64_t forward_thread;
  bool grad;  // grad mode when it began: on if its gradients are differentiated again
};

/// At this depth the engine continues on another thread.
constexpr int kMaxNesting = 96;

/// What this thread is doing. `depth` counts recorded ops: ops inside them are not recorded.
struct ThreadState {
  int depth, evaluating_count, node_count;
  bool busy;
  bool saves;         // the recorded op began with grad mode on: autograd may save for it
  OpFrame* in_place;  // of the recorded op, if it is one that overwrites what it reads
  const NodeName* evaluating[kMaxNesting];  // "autograd::engine::evaluate_function: X"
  Node nodes[kMaxNesting];
};

// Without constructors, because it is read several times per op.
constinit thread_local ThreadState this_thread{};

ThreadState& state() {
  return this_thread;
}

enum class Kind { evaluation, node, op };

struct Context final : at::ObserverContext, Pooled<Context> {
  explicit Context(Kind k) : kind(k) {}
  Kind kind;
  const OpTraits* traits = nullptr;
  std::unique_ptr<OpFrame> frame;  ///< null: an op of a hook, reported when the surrounding op has ended
};

constexpr char kEvaluate[] = "autograd::engine::evaluate_function: ";

/// Marks the sink's own work so that the observer does not see it.
struct BusyGuard {
  BusyGuard() { state().busy = true; }
  ~BusyGuard() { state().busy = false; }
};

/// In the boxed path inputs() is the whole interpreter stack: the arguments are its end. Empty if some are
/// missing.
c10::ArrayRef<const c10::IValue> arguments_of(const at::RecordFunction& fn, const OpTraits& traits) {
  const auto inputs = fn.inputs();
  const std::size_t wanted = traits.argument_written.size();
  if (inputs.size() < wanted) return {};
  return inputs.slice(inputs.size() - wanted, wanted);
}

/// The same for a call that is recorded itself; nothing for a call whose parts are recorded instead, or that
/// only passes through.
std::optional<c10::ArrayRef<const c10::IValue>> recorded_arguments(const at::RecordFunction& fn,
                                                                   const OpTraits& traits) {
  if (!traits.is_frontier()) return std::nullopt;
  const auto arguments = arguments_of(fn, traits);
  if (arguments.size() < traits.argument_written.size() || passes_through(arguments)) return std::nullopt;
  return arguments;
}

/// Inside an in-place op: autograd, before it calls the kernel, copies what its derivative will need.
std::unique_ptr<at::ObserverContext> start_saved_copy(const at::RecordFunction& fn, OpSink& sink,
                                                      ThreadState& s) {
  const OpTraits* traits = traits_of(fn);
  if (!traits || !traits->copies ||
      c10::impl::tls_local_dispatch_key_set().excluded_.has_any(c10::autograd_dispatch_keyset))
    return nullptr;
  const auto arguments = arguments_of(fn, *traits);
  if (arguments.empty()) return nullptr;
  auto context = std::make_unique<Context>(Kind::op);
  context->traits = traits;
  {
    const BusyGuard busy;
    context->frame = sink.on_saved_copy(*traits, *s.in_place, arguments);
  }
  if (!context->frame) return nullptr;
  ++s.depth;
  return context;
}

/// Autograd passes what it saves to hooks (torch.autograd.graph.saved_tensors_hooks, save_on_cpu) from inside
/// the op: with grad mode off, and before it calls a kernel.
bool in_pack_hook(const ThreadState& s) {
  return s.depth == 1 && s.saves && !at::GradMode::is_enabled() &&
         !c10::impl::tls_local_dispatch_key_set().excluded_.has_any(c10::autograd_dispatch_keyset) &&
         at::SavedTensorDefaultHooks::get_hooks().has_value();
}

/// An op of a hook may read the op's own result, so it is reported when that is known. An op that draws
/// numbers is not reported, because the generator has advanced by then.
std::unique_ptr<at::ObserverContext> start_hook_op(const at::RecordFunction& fn, ThreadState& s) {
  const OpTraits* traits = traits_of(fn);
  if (!traits || traits->seeded) return nullptr;
  const auto arguments = recorded_arguments(fn, *traits);
  if (!arguments) return nullptr;
  auto context = std::make_unique<Context>(Kind::op);
  context->traits = traits;
  hook_op_began(*traits, *arguments);
  ++s.depth;
  return context;
}

std::unique_ptr<at::ObserverContext> start_op(const at::RecordFunction& fn, OpSink& sink, ThreadState& s) {
  if (in_pack_hook(s)) return start_hook_op(fn, s);
  if (s.depth > 0) return s.depth == 1 && s.in_place ? start_saved_copy(fn, sink, s) : nullptr;
  const OpTraits* traits = traits_of(fn);
  if (!traits) {
    if (std::strncmp(fn.name(), kEvaluate, sizeof(kEvaluate) - 1) != 0 || s.evaluating_count == kMaxNesting)
      return nullptr;
    s.evaluating[s.evaluating_count++] = node_name(fn.name() + sizeof(kEvaluate) - 1);
    return std::make_unique<Context>(Kind::evaluation);
  }
  const auto arguments = recorded_arguments(fn, *traits);
  if (!arguments) return nullptr;
  auto context = std::make_unique<Context>(Kind::op);
  context->traits = traits;
  {
    const BusyGuard busy;
    context->frame = sink.on_start(*traits, *arguments);
  }
  if (!context->frame) return nullptr;
  ++s.depth;
  s.saves = at::GradMode::is_enabled();
  s.in_place = traits->in_place && s.saves ? context->frame.get() : nullptr;
  return context;
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& fn) {
  ThreadState& s = state();
  if (s.busy) return nullptr;
  OpSink* sink = active_sink.load(std::memory_order_acquire);
  if (!sink) return nullptr;
  try {
    if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION) {
      if (s.depth > 0 || s.node_count == kMaxNesting) return nullptr;
      s.nodes[s.node_count++] = {node_name(fn.name()), fn.seqNr(), fn.forwardThreadId(),
                                 at::GradMode::is_enabled()};
      return std::make_unique<Context>(Kind::node);
    }
    return start_op(fn, *sink, s);
  } catch (const std::exception& e) {
    sink->on_error(e.what());
  } catch (...) {
    sink->on_error("unknown exception");
  }
  return nullptr;
}

/// The results of an op, from the end of the interpreter's stack.
c10::ArrayRef<const c10::IValue> returns_of(const at::RecordFunction& fn, const OpTraits& traits) {
  const std::vector<c10::IValue>& outputs = fn.outputs();
  const std::size_t wanted = traits.returns.size();
  const c10::ArrayRef<const c10::IValue> all(outputs.data(), outputs.size());
  return outputs.size() >= wanted ? all.slice(outputs.size() - wanted, wanted) : all.slice(0, 0);
}

void end_op(const at::RecordFunction& fn, Context& context, ThreadState& s) {
  --s.depth;
  if (!context.frame) {
    hook_op_ended(returns_of(fn, *context.traits));
    return;
  }
  if (s.depth == 0) s.in_place = nullptr;
  OpSink* sink = active_sink.load(std::memory_order_acquire);
  if (!sink) return forget_hook_ops();
  try {
    const BusyGuard busy;
    sink->on_end(*context.traits, *context.frame, returns_of(fn, *context.traits));
    if (s.depth == 0) tell_hook_ops(*sink);
  } catch (const std::exception& e) {
    sink->on_error(e.what());
  } catch (...) {
    sink->on_error("unknown exception");
  }
}

void on_end(const at::RecordFunction& fn, at::ObserverContext* base) {
  auto* context = static_cast<Context*>(base);
  if (!context) return;
  ThreadState& s = state();
  switch (context->kind) {
    case Kind::evaluation:
      if (s.evaluating_count > 0) --s.evaluating_count;
      break;
    case Kind::node:
      if (s.node_count > 0) --s.node_count;
      break;
    case Kind::op:
      end_op(fn, *context, s);
      break;
  }
}

}  // namespace

Result<ObserverSession> ObserverSession::start(OpSink& sink) {
  OpSink* none = nullptr;
  if (!active_sink.compare_exchange_strong(none, &sink))
    return Error{ErrorCode::usage, "another recording is running in this process", "end it first"};
  state() = {};
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(on_start, on_end)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  return ObserverSession(handle, at::RecordFunction::currentThreadId());
}

ObserverSession::ObserverSession(ObserverSession&& other) noexcept
    : handle_(std::exchange(other.handle_, 0)), thread_(other.thread_), resting_(other.resting_) {}

void ObserverSession::rest() {
  if (!handle_ || resting_ || thread_ != at::RecordFunction::currentThreadId()) return;
  at::disableCallback(handle_);
  resting_ = true;
}

void ObserverSession::wake() {
  if (!resting_ || thread_ != at::RecordFunction::currentThreadId()) return;
  at::reenableCallback(handle_);
  resting_ = false;
}

ObserverSession::~ObserverSession() {
  if (!handle_) return;
  // PyTorch knows it on its own thread only; elsewhere it prints a warning. Without a sink it does nothing.
  if (thread_ == at::RecordFunction::currentThreadId()) at::removeCallback(handle_);
  active_sink.store(nullptr, std::memory_order_release);
}

namespace {

std::atomic<bool (*)(c10::ArrayRef<const c10::IValue>)> asked{nullptr};
std::atomic<at::CallbackHandle> asking{0};

std::unique_ptr<at::ObserverContext> ask(const at::RecordFunction& fn) {
  const auto begins = asked.load();
  if (!begins || state().busy) return nullptr;
  bool begun = false;
  {
    const ObserverPause pause;
    try {
      begun = begins(fn.inputs());
    } catch (...) {
      return nullptr;
    }
  }
  if (!begun || !asked.exchange(nullptr)) return nullptr;
  at::removeCallback(asking);
  return on_start(fn);
}

}  // namespace

void on_first_op(bool (*begins)(c10::ArrayRef<const c10::IValue> inputs)) {
  asked = begins;
  asking = at::addGlobalCallback(at::RecordFunctionCallback(ask, on_end)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
}

NodeContext current_node() {
  const ThreadState& s = state();
  if (s.node_count > 0) {
    const Node& node = s.nodes[s.node_count - 1];
    return {true, node.name->name, node.sequence, node.forward_thread,
            !node.grad && at::GradMode::is_enabled()};
  }
  if (s.evaluating_count > 0) return {true, s.evaluating[s.evaluating_count - 1]->after, -1, 0};
  return {};
}

namespace {

struct Region {
  const OpTraits* op;
  std::unique_ptr<OpFrame> frame;  // null: not reported
};

std::vector<Region>& regions() {
  thread_local std::vector<Region> open;
  return open;
}

}  // namespace

void open_region(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  ThreadState& s = state();
  OpSink* sink = active_sink.load(std::memory_order_acquire);
  std::unique_ptr<OpFrame> frame;
  if (sink && !s.busy && s.depth == 0 && at::hasThreadLocalCallbacks()) {
    const BusyGuard busy;
    try {
      frame = sink->on_start(op, inputs);
    } catch (const std::exception& e) {
      sink->on_error(e.what());
    } catch (...) {
      sink->on_error("unknown exception");
    }
  }
  if (frame) ++s.depth, s.saves = false;
  regions().push_back({&op, std::move(frame)});
}

void close_region(c10::ArrayRef<const c10::IValue> outputs) {
  if (regions().empty()) return;
  const Region region = std::move(regions().back());
  regions().pop_back();
  if (!region.frame) return;
  --state().depth;
  OpSink* sink = active_sink.load(std::memory_order_acquire);
  if (!sink) return;
  const BusyGuard busy;
  try {
    sink->on_end(*region.op, *region.frame, outputs);
  } catch (const std::exception& e) {
    sink->on_error(e.what());
  } catch (...) {
    sink->on_error("unknown exception");
  }
}

bool inside_observed_op() {
  return state().depth > 0;
}

ObserverPause::ObserverPause() : before_(std::exchange(state().busy, true)) {}
ObserverPause::~ObserverPause() {
  state().busy = before_;
}

}  // namespace nanquest
