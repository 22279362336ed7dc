/// Recorder records every op of a step: always its metadata, and its values for listeners. The main class of
/// probe/record, together with record.h.
///
///     Recorder recorder({.keep_steps = 2});
///     auto session = ObserverSession::start(recorder);
///     recorder.begin_step(17, /*watch=*/false);
///     … forward, backward …                              // ops go into step 17
///     if (bad) StepTables tables(recorder, *recorder.find(17));   // the step as the tables of a snapshot
///     recorder.begin_update(/*keep_values=*/true);       // what the optimizer overwrites is copied first
///     … optimizer.step() …
///     recorder.end_step(/*keep=*/true);                  // available until k steps later
///
/// How it works. An op is one flat record: a head, and words for its arguments and outputs (words.h). A step
/// is one set of buffers (step.h), and the buffers are reused in a ring, so a step that repeats the last one
/// allocates nothing: its records even reuse the stacks gathered last time (equal bytes at the same index).
/// Storages are numbered by an open-addressing table (slots.h) whose entries hold weak references, so that an
/// address means one storage only. What a step reads from outside is held by reference and copied before it
/// is overwritten: small storages at once (arena.h), others by the op that is seen to write. A version
/// counter and a sampled checksum show at the end whether something else wrote to it. Outputs of ops that may
/// not be repeatable (compiled regions, foreign kernels, collectives, sparse and nested tensors) are copied
/// as they are written. Tables, strings and hashes are made only when the step is asked for (tables.h).
///
/// For the file of a bad step, the recorder also copies what the last healthy step read from outside and what
/// is not kept from step to step (twin.h).
///
/// With RecorderOptions::tape the record continues between steps: updates without kept values, and what runs
/// between two steps, are recorded as well (without values), and all of it stays on a tape (tape.h).
///
/// In a watched step a ValueWatch sees every tensor as well: each row then has statistics and a hash, and the
/// ops that made non-finite values are known while the step runs. For other steps a replay is checked against
/// what is still alive: loss, gradients, and all memory that the step wrote last and that has not been freed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "probe/observe/observer.h"
#include "probe/record/device_copies.h"
#include "probe/record/early_copies.h"
#include "probe/record/leads.h"
#include "probe/record/open_overflows.h"
#include "probe/record/range_watch.h"
#include "probe/record/step.h"
#include "probe/record/survivors.h"
#include "probe/record/tape.h"
#include "probe/record/twins.h"

namespace nanquest {

struct RecorderOptions {
  int keep_steps = 2;                     ///< finished steps that are kept
  bool stacks = true;                     ///< gather the C++/Python stack of every op
  std::uint32_t max_ops = 1u << 20;       ///< a longer run of ops is not a step: its trace is dropped
  std::uint64_t hold_bytes = 1ull << 30;  ///< the same for a step that keeps more memory alive which the
                                          ///< program has released
  /// All finished steps that together hold more are dropped too, as soon as the program does something other
  /// than training: it may have deleted its model and need the memory.
  std::uint64_t hold_after_bytes = 256ull << 20;
  bool lead = false;  ///< record what runs between an update that is not recorded and the next step
  record::TapeOptions tape = {};  ///< an unbroken record of many steps (tape.h); off by default
};

/// A tensor at some moment of a step, for a row of tables that are made later (StepTables::add).
struct SeenTensor {
  at::Tensor tensor;              ///< its memory, without autograd history; undefined for what can't be
                                  ///< recorded
  TensorRow row;                  ///< without slot and statistics
  std::optional<StatsRow> stats;  ///< whether to hash it
  std::int32_t watched = kNone;   ///< row of the watched step's statistics with the same content, used
                                  ///< instead
};

/// Records ops into steps. Begun, ended and asked on one thread; ops may come from its autograd threads as
/// well.
class Recorder : public OpSink {
 public:
  explicit Recorder(RecorderOptions options);
  ~Recorder() override;

  /// Ops are recorded from here on, into a step with this number; with `watch` its values are looked at too.
  /// A step that was not ended is dropped. The limits of RecorderOptions do not end a watched step.
  void begin_step(std::int64_t number, bool watch = false);
  /// The optimizer is about to write. With `keep_values` recording goes on, and what the optimizer overwrites
  /// is copied first. Without it recording stops, and the step is not available after the update.
  void begin_update(bool keep_values);
  /// What the recorded steps read may have been overwritten unnoticed (by a captured graph): none of them is
  /// available any more, and no more ops go into the running step.
  void lose();
  /// No more ops go into the step; it stays available until it ends. With a tape, what runs from here on goes
  /// to the tape only.
  void stop();
  /// Recording stops. `keep`: the step stays available until k later ones have begun.
  void end_step(bool keep);
  /// Returns the memory of the last step's values to the system, unless the step is kept. Tables of that step
  /// become invalid. Later steps have to allocate again.
  void release_values();

  /// The running step is finite so far: keeps it as one of the twins.
  void keep_healthy(std::int64_t number, const record::TwinNames& names);
  /// The last healthy steps, for comparison with a later bad step.
  record::Twins& twins() { return twins_; }
  /// A kept step is not needed any more: frees what it holds.
  void let_go(std::int64_t number);
  /// Slot of a tensor in the running step; UINT32_MAX if it has none.
  std::uint32_t slot_of(const at::Tensor& tensor);

  /// The program gives this tensor, which an op of the step made, to its model: from its next use on it
  /// counts as memory from outside, unless it depends on the output of a module.
  void forget_if_produced(const at::Tensor& tensor);
  /// A copy of the tensor as it is now.
  SeenTensor see(const at::Tensor& tensor);
  /// Looks now at everything that can be known of the running step: what collectives wrote, and in a watched
  /// step the values read from outside.
  void complete();
  /// Whether an op of the step that runs, or has just ended, wrote to this storage, the last one not before
  /// op `first`.
  bool wrote(const c10::StorageImpl* storage, std::size_t first = 0);
  /// A device may put back what the running step wrote there, without an op: it is not compared with a
  /// replay, and what reads it from here on reads memory from outside.
  void may_be_put_back(const std::vector<at::Tensor>& tensors);
  /// What survives of the step that runs (survivors.h), from op `first` on.
  std::vector<record::Survivor> survivors(std::size_t first);
  /// Whether any output of a module in the running step is still alive.
  bool left_something();
  /// Whether the next step should be watched: it is still open whether overflows on a device were hidden.
  bool asks_for_watching();
  /// For a watched step that is running: whether an op's overflow changed a finite result.
  bool hides_damage();
  /// For a watched step that is running: the non-finite values that ops from `first` on, in this phase, left
  /// in memory that is still alive. Waits for the device.
  bool left_non_finite(std::size_t first, Phase phase);

  /// The running step has passed its gate; its update is next. `loss` (may be undefined) is what was taken as
  /// its loss. Used by the tape only.
  void passed_gate(const record::GateNote& note, const at::Tensor& loss);
  /// The update is over: what runs from here on until the next step begins leads to that one (lead.h). With
  /// RecorderOptions::lead it is recorded by itself, up to a limit, if the step is not recorded any more; it
  /// is dropped at the next update. Large memory that it overwrites is not copied.
  void updated();
  /// What was recorded by itself before the running step; null if there is nothing, or not all of it.
  record::Step* lead() { return leads_.led(); }
  /// Something happened that is not recorded: what is on the tape can no longer be used (Tape::cut).
  void cut_tape(const std::string& why, bool every_step = true);
  /// The tape; null if there is none.
  record::Tape* tape() { return tape_.get(); }
  /// Everything on the tape up to now as one long step (Tape::whole). Null if there is nothing.
  std::unique_ptr<record::Step> taped();

  /// How far the values of the running step reach so far: all places of a watched step, or those of
  /// `look_at`. Waits for the device where something lies on one.
  std::vector<record::SeenRange> ranges();
  /// Looks at these places in steps that are not watched, from here on. An empty list stops it.
  void look_at(std::vector<record::RangePlace> places);

  bool recording() const { return recording_; }
  /// Number of ops in the step that is recorded or was recorded last.
  std::size_t op_count() const { return current_ ? current_->ops.size() : 0; }
  /// The step that is being recorded or was recorded last; null before the first.
  record::Step* current() { return current_; }
  /// The available step with this number; null if there is none.
  record::Step* find(std::int64_t number);
  /// Numbers of the available steps, oldest first.
  std::vector<std::int64_t> steps() const;
  /// Whether the recorder would ignore ops now: it records no step, and holds none whose values could still
  /// be overwritten.
  bool idle();
  /// Cost of recording the last update; all 0 if it was not kept.
  const record::UpdateCost& update_cost() const { return update_cost_; }
  /// Bytes held by all buffers together.
  std::size_t memory() const;

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  /// Records the copy as an op of its own, before the op that overwrites what was copied.
  std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                         c10::ArrayRef<const c10::IValue> inputs) override;
  /// Stops recording: a step with a gap can't be replayed.
  void on_error(const char* what) override;
  /// The message that `on_error` got, or "".
  const std::string& error() const { return error_; }

 private:
  struct Frame;
  /// An op begins: its record, with its arguments, is the last one of the step.
  std::unique_ptr<Frame> add_op(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
  record::Step& free_step();
  void age(std::int64_t number);
  void record_argument(const OpTraits& op, std::size_t index, const c10::IValue& value, Frame& frame);
  std::uint32_t outside_or_known(const at::Tensor& tensor, bool blind, bool awaits, bool& host_write);
  void add_host_write(const at::Tensor& tensor, std::uint32_t slot);
  void link_maker(const at::Tensor& tensor, std::uint32_t slot);
  void give_up_step();
  bool holds_too_much();
  void let_go_of_the_past();
  /// Keeps what the memory holds. On a device the copy is made later, by `copy_overwritten` for all at once.
  void about_to_write(record::Step& step, std::uint32_t slot);
  void copy_overwritten();
  /// Whether the op overwrites all of a memory from outside whose values were never read and that no earlier
  /// step needs. The values are then dropped.
  bool overwrites_unread(const OpTraits& op, const at::Tensor& tensor, std::uint32_t slot);
  /// The current stretch of ops is over: it goes onto the tape.
  void put_on_tape();
  void end_tape(const std::string& why, bool every_step = true);
  /// The step is over, or no longer available: what runs until the next step goes onto the tape only.
  void record_between();
  /// Whether the running step, which is about to be dropped, leads to the next one: it recorded what ran
  /// after its update, and what that overwrote is not much.
  bool leads_on() const;
  void drop_lead();
  void note_for_tape(const OpTraits& op, const Frame& frame, c10::ArrayRef<const c10::IValue> outputs);
  void share_stack(const Frame& frame, std::unique_lock<std::mutex>& lock);
  void record_output(const OpTraits& op, Frame& frame, ReturnKind kind, const at::Tensor& tensor);
  void record_written(const OpTraits& op, Frame& frame, const at::Tensor& tensor);
  bool is_inside_collective() const;
  /// This storage is about to be overwritten; steps may hold values in it (KeptOutputs::lend).
  void call_in(const c10::StorageImpl* storage);
  void late_write(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);

  RecorderOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<record::Step>> all_;
  std::vector<record::Step*> kept_;  // oldest first
  record::Step* current_ = nullptr;
  record::Step between_;          // what runs between two steps, for the tape
  record::Leads leads_;           // the same without a tape
  record::Step* into_ = nullptr;  // where ops go: `current_`, `between_` or a stretch of `leads_`
  bool put_ = false;              // already on the tape
  std::unique_ptr<record::Tape> tape_;
  record::Step* before_ = nullptr;  // recorded before the current one: its records are the template
  bool recording_ = false, updating_ = false;
  std::uint64_t thread_ = 0;       // the thread on which the step was begun
  std::uint32_t ops_between_ = 0;  // since recording stopped
  record::UpdateCost update_cost_;
  record::DeviceCopies device_copies_;   // what the op that begins overwrites …
  record::EarlyCopies early_copies_;     // … and what later ops of the step overwrite, outside its update,
  record::EarlyCopies early_in_update_;  // … and in it
  record::Twins twins_;
  record::RangeWatch range_watch_;
  record::OpenOverflows open_overflows_;
  std::vector<std::vector<at::Tensor>> spare_;  // for frames
  std::string error_;
};

}  // namespace nanquest
