/// The standing trace: every step's ops on record, at the price of metadata. The face of
/// probe/capture/standing.
///
///     StandingTrace trace({.keep_steps = 2});
///     auto session = ObserverSession::start(trace);
///     trace.begin_step(17);
///     … forward, backward …                          // ops go into step 17
///     if (bad) StandingTables tables(trace, 17);         // the tables that a TraceRecorder would have made
///     trace.begin_update(/*keep_values=*/true);          // the values that the optimizer overwrites are
///     copied … optimizer.step() … trace.end_step(/*keep=*/true);                     // replayable until k
///     steps later
///
/// How it works. An op is one flat record: a head, and words for its arguments and outputs (words.h). A step
/// is one set of buffers (step.h), and buffers go round in a ring, so a step that repeats the last one
/// allocates nothing: its records even find the stacks gathered last time (equal bytes at the same index).
/// Storages are numbered by an open-addressing table (slots.h) whose entries hold weak references, so that an
/// address means one storage only. What a step reads from outside is held by reference and copied when
/// something is about to overwrite it: small storages at once (values.h), others by the op that is seen to
/// write, and a version counter and a sampled checksum tell at the end if somebody wrote unseen. Nothing
/// becomes a table, a string or a hash before somebody asks for the step (StandingTables); then the tables
/// are those of TraceRecorder, op for op, and the proof of a replay is what is alive: loss, gradients, and
/// all memory that the step wrote last and that nobody has freed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "probe/capture/standing/step.h"
#include "probe/observe/observer.h"

namespace nanquest {

struct StandingOptions {
  int keep_steps = 2;                     ///< finished steps that stay
  bool stacks = true;                     ///< C++/Python stack of every op
  std::uint32_t max_ops = 1u << 20;       ///< a step with more is no step: its trace is dropped
  std::uint64_t hold_bytes = 1ull << 30;  ///< so is one that keeps more alive that the program has let go of
  /// So are all finished steps that together do, once the program does something else than training: it may
  /// have deleted its model and need the room.
  std::uint64_t hold_after_bytes = 256ull << 20;
};

/// Records ops into steps. Begun, ended and asked on one thread; ops may come from its autograd threads as
/// well.
class StandingTrace : public OpSink {
 public:
  explicit StandingTrace(StandingOptions options);
  ~StandingTrace() override;

  /// Ops are recorded from here on, into a step with this number. A step that was not ended is dropped.
  void begin_step(std::int64_t number);
  /// The optimizer is about to write. With `keep_values` recording goes on and what it overwrites is copied
  /// first; without, recording stops and the step can't be asked for after the update.
  void begin_update(bool keep_values);
  /// Recording stops. `keep`: the step stays until k later ones were begun.
  void end_step(bool keep);

  /// The step with this number is recorded by somebody else: kept steps grow older by it. What it overwrites
  /// of the last step is seen if its ops are shown here as well.
  void pass_step(std::int64_t number);
  /// A tensor that an op of the step made is, from here on, what the program gives to its model: it counts as
  /// memory from outside when it is used next.
  void forget_if_produced(const at::Tensor& tensor);

  bool recording() const { return recording_; }
  /// Ops of the step that is recorded or was recorded last.
  std::size_t op_count() const { return current_ ? current_->ops.size() : 0; }
  /// An op came by that can't be run again from its inputs (collectives, compiled regions, foreign kernels,
  /// sparse and nested tensors): what such ops write has to be kept as it is written, which TraceRecorder
  /// does. Later steps should be recorded by it. Forgotten by `begin_step`.
  bool outgrown() const { return outgrown_; }
  /// The step that is being recorded, or was last; null before the first, and once it was dropped.
  standing::Step* current() { return current_; }
  /// A step that can be asked for, null if there is none of this number.
  standing::Step* find(std::int64_t number);
  /// Numbers of the steps that can be asked for, oldest first.
  std::vector<std::int64_t> steps() const;
  /// Whether it would do nothing about ops now: it records no step, and holds none whose values the program
  /// could still overwrite.
  bool idle();
  /// What recording the last update took; all 0 for one that was not kept.
  const standing::UpdateCost& update_cost() const { return update_cost_; }
  /// Bytes held by all buffers together.
  std::size_t memory() const;

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  /// Recording stops: a step with a hole can't be replayed.
  void on_error(const char* what) override;
  /// What `on_error` was told, "" if nothing.
  const std::string& error() const { return error_; }

 private:
  friend class StandingTables;
  struct Frame;
  standing::Step& free_step();
  void age(std::int64_t number);
  void record_argument(const OpTraits& op, std::size_t index, const c10::IValue& value, Frame& frame);
  std::uint32_t outside_or_known(const at::Tensor& tensor, bool blind, bool& host_write);
  void add_host_write(const at::Tensor& tensor, std::uint32_t slot);
  void link_maker(const at::Tensor& tensor, std::uint32_t slot);
  void give_up_step();
  bool holds_too_much();
  void let_go_of_the_past();
  void about_to_write(std::uint32_t slot);
  void share_stack(const Frame& frame, std::unique_lock<std::mutex>& lock);
  void record_output(const OpTraits& op, Frame& frame, ReturnKind kind, const at::Tensor& tensor);
  void record_written(const OpTraits& op, const Frame& frame);
  void keep_values(const Frame& frame, c10::ArrayRef<const c10::IValue> outputs);
  void late_write(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);

  StandingOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<standing::Step>> all_;
  std::vector<standing::Step*> kept_;  // oldest first
  standing::Step* current_ = nullptr;
  standing::Step* before_ = nullptr;  // recorded before the current one: its records are the template
  bool recording_ = false, updating_ = false, outgrown_ = false;
  std::uint32_t ops_between_ = 0;  // since recording stopped
  standing::UpdateCost update_cost_;
  std::vector<std::vector<at::Tensor>> spare_;  // for frames
  std::string error_;
};

}  // namespace nanquest
