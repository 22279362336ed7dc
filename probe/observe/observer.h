/// The observer: turns the dispatcher's record functions into frontier ops (design §2, §5).
///
/// One session at a time in a process. The sink is called on the thread that runs the op, above
/// autograd, once before and once after each frontier op; what an op calls inside itself is not
/// reported, but for the copy that autograd keeps of what an op is about to overwrite. Sinks may run ATen ops
/// themselves: those are not observed.
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
  std::string_view name;  ///< "MmBackward0"; "accumulation after MmBackward0" between nodes. Lives for ever:
                          ///< equal names are the same characters in memory
  std::int64_t sequence = -1;        ///< autograd sequence number of the node, -1 outside a node
  std::uint64_t forward_thread = 0;  ///< thread that made the node
  bool forward_again =
      false;  ///< a forward pass runs inside the node: gradient checkpointing computes it again
};

/// What a sink keeps between the two calls of one op.
struct OpFrame {
  virtual ~OpFrame() = default;
};

/// Receives frontier ops. Exceptions are caught by the observer and handed to `on_error`.
class OpSink {
 public:
  virtual ~OpSink() = default;
  /// Before the op. `inputs` has one IValue per schema argument and is valid during the call only.
  virtual std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) = 0;
  /// After the op. `outputs` has one IValue per schema return; empty if the op threw or returns nothing.
  virtual void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) = 0;
  /// Before autograd copies (by the operator `copy`, called on `inputs`) what the op of `outer`, which has
  /// begun and has computed nothing yet, will overwrite: its derivative reads the copy. Ends by on_end. Null:
  /// not of interest.
  virtual std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                                 c10::ArrayRef<const c10::IValue> inputs) {
    (void)copy, (void)outer, (void)inputs;
    return nullptr;
  }
  /// Something inside the sink failed; recording of that op is incomplete.
  virtual void on_error(const char* what) = 0;
};

/// Observation of this thread, and of autograd threads that work for it, while it lives.
class ObserverSession {
 public:
  /// Fails with `usage` if another session is active.
  static Result<ObserverSession> start(OpSink& sink);
  ObserverSession(ObserverSession&& other) noexcept;
  ObserverSession& operator=(ObserverSession&&) = delete;
  ~ObserverSession();

  /// Nothing is reported until `wake`, and ops cost what they cost without a session: where nobody would look
  /// at what is reported, that is cheaper than not listening. A switch costs about what two ops do. Outside
  /// of ops only; without effect on another thread than the session's.
  void rest();
  void wake();

 private:
  ObserverSession(std::uint64_t handle, std::uint64_t thread) : handle_(handle), thread_(thread) {}
  std::uint64_t handle_ = 0, thread_ = 0;
  bool resting_ = false;
};

/// For a program that does not say when it begins to train: `begins` is asked before every op, on the thread
/// of that op and with what it is given, until it returns true. It has started a session on that thread then,
/// which is told of this very op, or of its parts, as its first. Asking stops with that. Once in a process.
void on_first_op(bool (*begins)(c10::ArrayRef<const c10::IValue> inputs));

/// Node that runs on the calling thread now. Cheap; meant for sinks.
NodeContext current_node();

/// Work that runs where nobody sees its ops (what a compiler made) is told by its caller as one op, from
/// `open_region` to `close_region` on the same thread; what is dispatched inside is not reported. Calls must
/// pair; they may nest (then the outermost is reported). Nothing happens on threads that no session observes.
/// Never throw.
void open_region(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
void close_region(c10::ArrayRef<const c10::IValue> outputs);

/// True while this thread is inside an op that a sink was shown the start of.
bool inside_observed_op();

}  // namespace nanquest
