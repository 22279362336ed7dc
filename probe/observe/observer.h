/// The observer: turns the dispatcher's record functions into frontier ops.
///
/// One session at a time in a process. The sink is called on the thread that runs the op, above autograd,
/// once before and once after each frontier op. Ops that an op calls internally are not reported, except the
/// copy that autograd keeps of what an op is about to overwrite. Sinks may run ATen ops themselves: those are
/// not observed.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "probe/base/result.h"
#include "probe/observe/observer_pause.h"
#include "probe/observe/op_traits.h"

namespace nanquest {

/// The backward node that runs on this thread, if any.
struct NodeContext {
  bool in_backward = false;  ///< the autograd engine is evaluating a node
  std::string_view name;     ///< "MmBackward0"; "accumulation after MmBackward0" between nodes. Never freed:
                             ///< equal names have the same address
  std::int64_t sequence = -1;        ///< autograd sequence number of the node, -1 outside a node
  std::uint64_t forward_thread = 0;  ///< thread that made the node
  bool forward_again =
      false;  ///< a forward pass runs inside the node: gradient checkpointing computes it again
};

/// Data that a sink keeps between the two calls of one op.
struct OpFrame {
  virtual ~OpFrame() = default;
};

/// Receives frontier ops. The observer catches exceptions and passes them to `on_error`.
class OpSink {
 public:
  virtual ~OpSink() = default;
  /// Before the op. `inputs` has one IValue per schema argument and is valid during the call only.
  virtual std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) = 0;
  /// After the op. `outputs` has one IValue per schema return; empty if the op threw or returns nothing.
  virtual void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) = 0;
  /// Before autograd copies (by the operator `copy`, called on `inputs`) what the op of `outer`, which has
  /// begun and has computed nothing yet, will overwrite: its derivative reads the copy. Ends with on_end.
  /// Null: ignored.
  virtual std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                                 c10::ArrayRef<const c10::IValue> inputs) {
    (void)copy, (void)outer, (void)inputs;
    return nullptr;
  }
  /// The sink failed; recording of that op is incomplete.
  virtual void on_error(const char* what) = 0;
};

/// While it exists, observes this thread and autograd threads that work for it.
class ObserverSession {
 public:
  /// Fails with `usage` if another session is active.
  static Result<ObserverSession> start(OpSink& sink);
  ObserverSession(ObserverSession&& other) noexcept;
  ObserverSession& operator=(ObserverSession&&) = delete;
  ~ObserverSession();

  /// Reports nothing until `wake`, and ops cost the same as without a session. That is cheaper than listening
  /// when the reports are not used. A switch costs about as much as two ops. Outside of ops only; no effect
  /// on another thread than the session's.
  void rest();
  void wake();

 private:
  ObserverSession(std::uint64_t handle, std::uint64_t thread) : handle_(handle), thread_(thread) {}
  std::uint64_t handle_ = 0, thread_ = 0;
  bool resting_ = false;
};

/// For a program that does not announce when it begins to train: `begins` is called before every op, on the
/// op's thread and with its inputs, until it returns true. It must then have started a session on that
/// thread, which gets this op, or its parts, as its first. After that `begins` is not called again. Once in a
/// process.
void on_first_op(bool (*begins)(c10::ArrayRef<const c10::IValue> inputs));

/// Node that runs on the calling thread. Cheap; for sinks.
NodeContext current_node();

/// For work whose ops are not observable (compiled code): its caller reports it as one op, from `open_region`
/// to `close_region` on the same thread; ops dispatched inside are not reported. Calls must pair; they may
/// nest (then the outermost is reported). No effect on threads without a session. Never throw.
void open_region(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
void close_region(c10::ArrayRef<const c10::IValue> outputs);

/// True while this thread is inside an op whose start a sink was shown.
bool inside_observed_op();

}  // namespace nanquest
