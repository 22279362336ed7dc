/// Recorder: every op of a step on record, at the price of metadata; its values for who watches. The face of
/// probe/record together with record.h.
///
///     Recorder recorder({.keep_steps = 2});
///     auto session = ObserverSession::start(recorder);
///     recorder.begin_step(17, /*watch=*/false);
///     … forward, backward …                              // ops go into step 17
///     if (bad) StepTables tables(recorder, *recorder.find(17));   // the step as the tables of a snapshot
///     recorder.begin_update(/*keep_values=*/true);       // what the optimizer overwrites is copied first
///     … optimizer.step() …
///     recorder.end_step(/*keep=*/true);                  // can be asked for until k steps later
///
/// How it works. An op is one flat record: a head, and words for its arguments and outputs (words.h). A step
/// is one set of buffers (step.h), and buffers go round in a ring, so a step that repeats the last one
/// allocates nothing: its records even find the stacks gathered last time (equal bytes at the same index).
/// Storages are numbered by an open-addressing table (slots.h) whose entries hold weak references, so that an
/// address means one storage only. What a step reads from outside is held by reference and copied when
/// something is about to overwrite it: small storages at once (arena.h), others by the op that is seen to
/// write, and a version counter and a sampled checksum tell at the end if somebody wrote unseen. What ops
/// write that perhaps can't be run again (compiled regions, foreign kernels, collectives, sparse and nested
/// tensors) is copied as it is written. Nothing becomes a table, a string or a hash before somebody asks for
/// the step (tables.h).
///
/// Of the last healthy step what it read from outside, and what does not live on, is copied (twin.h), for the
/// file of a step that goes bad after it.
///
/// With RecorderOptions::tape the record goes on where a step ends: what updates do that nobody keeps, and
/// what runs between two steps, is recorded as well (without values), and all of it stays on a tape (tape.h).
///
/// Of a watched step a ValueWatch is shown every tensor as well: then each row has statistics and a hash, and
/// the ops that made something bad are known while the step runs. Of others the proof of a replay is what is
/// alive: loss, gradients, and all memory that the step wrote last and that nobody has freed.
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
#include "probe/record/open_overflows.h"
#include "probe/record/range_watch.h"
#include "probe/record/step.h"
#include "probe/record/tape.h"
#include "probe/record/twin.h"

namespace nanquest {

struct RecorderOptions {
  int keep_steps = 2;                     ///< finished steps that stay
  bool stacks = true;                     ///< C++/Python stack of every op
  std::uint32_t max_ops = 1u << 20;       ///< a step with more is no step: its trace is dropped
  std::uint64_t hold_bytes = 1ull << 30;  ///< so is one that keeps more alive that the program has let go of
  /// So are all finished steps that together do, once the program does something else than training: it may
  /// have deleted its model and need the room.
  std::uint64_t hold_after_bytes = 256ull << 20;
  record::TapeOptions tape = {};  ///< an unbroken record of many steps (tape.h); none by default
};

/// A tensor at some moment of a step, for a row of tables that are made later (StepTables::add).
struct SeenTensor {
  at::Tensor tensor;              ///< its memory, without history; undefined for what can't be recorded
  TensorRow row;                  ///< without slot and statistics
  std::optional<StatsRow> stats;  ///< with a hash
  std::int32_t watched = kNone;   ///< row of the watched step's statistics that holds them instead
};

/// Records ops into steps. Begun, ended and asked on one thread; ops may come from its autograd threads as
/// well.
class Recorder : public OpSink {
 public:
  explicit Recorder(RecorderOptions options);
  ~Recorder() override;

  /// Ops are recorded from here on, into a step with this number; its values are looked at with `watch`. A
  /// step that was not ended is dropped. Limits of RecorderOptions don't end a watched step.
  void begin_step(std::int64_t number, bool watch = false);
  /// The optimizer is about to write. With `keep_values` recording goes on and what it overwrites is copied
  /// first; without, recording stops and the step can't be asked for after the update.
  void begin_update(bool keep_values);
  /// What the steps on record read may have been overwritten unseen (by a graph that was captured): none of
  /// them can be asked for any more, and no more ops go into the one that runs.
  void lose();
  /// No more ops go into the step; it can be asked for until it ends. With a tape, what runs from here on
  /// goes onto that alone.
  void stop();
  /// Recording stops. `keep`: the step stays until k later ones were begun.
  void end_step(bool keep);
  /// Memory of the values that the last step held goes back to the system, unless the step stays. Steps like
  /// it will have to get it again; nothing may refer to its tables any more.
  void release_values();

  /// The step that runs is well so far: what it has read from outside is kept for a step that goes bad after
  /// it (twin.h). `number` is the program's. At most `record::kTwinBytes` of each of two steps are held.
  void keep_healthy(std::int64_t number, const record::TwinNames& names);
  /// The healthy steps that are kept and came before this one, the last first.
  std::vector<const record::TwinBatch*> twins_before(std::int64_t number) const;

  /// A tensor that an op of the step made is, from here on, what the program gives to its model: it counts as
  /// memory from outside when it is used next, unless it goes back to what a module made.
  void forget_if_produced(const at::Tensor& tensor);
  /// The tensor as it is now.
  SeenTensor see(const at::Tensor& tensor);
  /// All that can be known of the step that runs is looked at now: what collectives wrote, and of a watched
  /// step the values that it read from outside.
  void complete();
  /// Whether an op of the step that runs, or has just ended, wrote to this storage.
  bool wrote(const c10::StorageImpl* storage);
  /// Whether anything that modules computed in the step that runs is still there.
  bool left_something();
  /// The next step should be watched: one on a device left open whether overflows were hidden.
  bool asks_for_watching();
  /// Of a watched step that runs: an op's overflow changed a finite result.
  bool hides_damage();
  /// Of a watched step that runs: non-finite values that ops from `first` on left, in this phase, in memory
  /// that is still there.
  /// Waits for the device.
  bool left_non_finite(std::size_t first, Phase phase);
  /// The first NaN or +Inf (-Inf is often meant) of what the step wrote last and somebody still has: that
  /// element of its memory, without dimensions. Undefined if there is none. Looks at all of it.
  at::Tensor last_non_finite();

  /// The gate of the step that runs was passed; its update is next. `loss` (may be undefined) is what was
  /// seen as its loss. For the tape alone.
  void passed_gate(const record::GateNote& note, const at::Tensor& loss);
  /// The update is over. For the tape alone.
  void updated();
  /// Something happened that is not on record: what was on tape is of no use any more (Tape::cut).
  void cut_tape(const std::string& why, bool every_step = true);
  /// The tape; null if there is none.
  record::Tape* tape() { return tape_.get(); }
  /// All that is on tape as one long step (Tape::whole), up to now. Null if there is nothing.
  std::unique_ptr<record::Step> taped();

  /// How far the values of the step that runs reach so far: of a watched step all places, of another those of
  /// `look_at`. Waits for the device where something lies on one.
  std::vector<record::SeenRange> ranges();
  /// These places are looked at in steps that nobody watches, from here on; none: no more.
  void look_at(std::vector<record::RangePlace> places);

  bool recording() const { return recording_; }
  /// Ops of the step that is recorded or was recorded last.
  std::size_t op_count() const { return current_ ? current_->ops.size() : 0; }
  /// The step that is being recorded, or was last; null before the first.
  record::Step* current() { return current_; }
  /// A step that can be asked for, null if there is none of this number.
  record::Step* find(std::int64_t number);
  /// Numbers of the steps that can be asked for, oldest first.
  std::vector<std::int64_t> steps() const;
  /// Whether it would do nothing about ops now: it records no step, and holds none whose values the program
  /// could still overwrite.
  bool idle();
  /// What recording the last update took; all 0 for one that was not kept.
  const record::UpdateCost& update_cost() const { return update_cost_; }
  /// Bytes held by all buffers together.
  std::size_t memory() const;

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  /// The copy is an op of its own, before the one that overwrites what was copied.
  std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                         c10::ArrayRef<const c10::IValue> inputs) override;
  /// Recording stops: a step with a hole can't be replayed.
  void on_error(const char* what) override;
  /// What `on_error` was told, "" if nothing.
  const std::string& error() const { return error_; }

 private:
  struct Frame;
  /// An op begins: its record, filled with its arguments, is the last of the step.
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
  /// Keeps what the memory holds; on a device that is a promise, which `copy_overwritten` holds for all.
  void about_to_write(record::Step& step, std::uint32_t slot);
  void copy_overwritten();
  /// Whether the op writes all of memory from outside whose values nothing read, and no step before may need.
  /// Then they are let go of.
  bool overwrites_unread(const OpTraits& op, const at::Tensor& tensor, std::uint32_t slot);
  /// What ops go into is over: it goes onto the tape.
  void put_on_tape();
  void end_tape(const std::string& why, bool every_step = true);
  /// The step is over, or may not be asked for any more: what runs until the next one goes onto the tape
  /// alone.
  void record_between();
  void note_for_tape(const OpTraits& op, const Frame& frame, c10::ArrayRef<const c10::IValue> outputs);
  void share_stack(const Frame& frame, std::unique_lock<std::mutex>& lock);
  void record_output(const OpTraits& op, Frame& frame, ReturnKind kind, const at::Tensor& tensor);
  void record_written(const OpTraits& op, Frame& frame, const at::Tensor& tensor);
  /// What a collective writes is kept when somebody has waited for it.
  void keep_later(Frame& frame, const at::Tensor& tensor, std::uint32_t slot, std::uint32_t token,
                  bool argument);
  bool is_inside_collective() const;
  bool finishes_collective(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) const;
  bool draws_on_device(const record::OpRecord& op) const;
  void keep_values(const Frame& frame, c10::ArrayRef<const c10::IValue> outputs);
  /// … which is the case when it is read: its values are kept now.
  void settle(std::uint32_t slot);
  void settle_all();
  /// Somebody is about to write to this storage, which steps may hold values in (lent.h).
  void call_in(const c10::StorageImpl* storage);
  void late_write(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);

  RecorderOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<record::Step>> all_;
  std::vector<record::Step*> kept_;  // oldest first
  record::Step* current_ = nullptr;
  record::Step between_;          // what runs between two steps, for the tape
  record::Step* into_ = nullptr;  // where ops go: `current_` or `between_`
  bool put_ = false;              // it is on tape already
  std::unique_ptr<record::Tape> tape_;
  record::Step* before_ = nullptr;  // recorded before the current one: its records are the template
  bool recording_ = false, updating_ = false;
  std::uint64_t thread_ = 0;       // on which the step was begun
  std::uint32_t ops_between_ = 0;  // since recording stopped
  record::UpdateCost update_cost_;
  record::DeviceCopies device_copies_;  // of what the op that begins overwrites …
  record::EarlyCopies early_copies_;    // … and later ones of the step, outside its update
  record::TwinBatch twins_[2];          // the file of a step may be written when the next one is well
  int last_twin_ = 0;
  record::RangeWatch range_watch_;
  record::OpenOverflows open_overflows_;
  std::vector<std::vector<at::Tensor>> spare_;  // for frames
  std::string error_;
};

}  // namespace nanquest
