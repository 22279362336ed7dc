/// ValueWatch: what a watched step tells of the values that its ops read and wrote: their statistics, their
/// hashes, and which op made something non-finite of finite inputs. It listens to the recorder, which shows
/// it every tensor after it has put down its token; a step that nobody watches has none.
///
/// Statistics belong to tokens and are found by the place of the token among the step's words, so that they
/// become a row's when the tables are made (tables.h). Values that the step reads from outside are kept
/// anyway: they are looked at when somebody wants to know, which in a good step nobody does.
///
/// What lies on a device is not waited for: its rows are filled, and its ops judged, when somebody wants to
/// know (`settle`). Nobody keeps what such an op read, so whether it overflowed its format, and whether later
/// ops hid that, the next watched step asks (open_overflows.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "probe/observe/op_traits.h"
#include "probe/record/open_overflows.h"
#include "probe/record/step.h"
#include "probe/tensor/hidden_overflow.h"
#include "probe/tensor/later_scans.h"
#include "probe/trace/births.h"

namespace nanquest::record {

/// What is to be known of a tensor's values. Their hash costs a walk in logical order: only what an op wrote
/// needs it.
enum class Look { nothing, values, values_and_hash };

/// What is kept of a watched op between its beginning and its end.
struct WatchedOp {
  std::vector<c10::IValue> inputs;  ///< as the op reads them: what it will write is copied
  HiddenOverflows::ReaderPtr reader;
  OpResults made;
  std::vector<std::size_t> unseen;  ///< what it reads that nobody has looked at yet, as places in `seen_`
  struct Unsure {
    std::size_t seen;
    at::Tensor tensor;
  };
  std::vector<Unsure> unsure;  ///< what a compiled region reads and perhaps writes
  std::vector<std::int32_t> waiting_in, waiting_out;  ///< rows that nobody has filled yet
  bool inputs_finite = true;
  bool inputs_kept = true;  ///< `inputs` are still what the op read, once it has run
  bool made_bad = false;
  bool asked = false;  ///< on a device it is waited for
};

/// Not thread-safe: the recorder locks. Runs ATen ops, which its owner keeps from being observed.
class ValueWatch {
 public:
  /// Of `step`, which outlives it as `open` does. `stacks`: a birth whose stack nobody has gathered gets one.
  ValueWatch(Step& step, bool stacks, OpenOverflows& open) : step_(step), stacks_(stacks), open_(open) {}

  /// An op is about to begin; its arguments have not been put down yet.
  void before_arguments(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
  /// An argument was put down at `token`. `written`: the op will write it.
  void argument(const OpTraits& op, WatchedOp& watched, const at::Tensor& tensor, std::uint32_t slot,
                std::uint32_t token, bool read, bool written);
  /// All were, and the op's record is the step's last. `written`: those that the op will write.
  void before_op(const OpTraits& op, WatchedOp& watched, c10::ArrayRef<const c10::IValue> inputs,
                 const std::vector<at::Tensor>& written, bool opaque);
  /// The op has run; nothing of what it made has been put down yet.
  void before_outputs(const OpTraits& op, c10::ArrayRef<const c10::IValue> outputs,
                      const std::vector<at::Tensor>& written);
  /// It wrote `tensor`, put down at `token`, as its output `output` (-1: no output but an argument).
  void wrote(const OpTraits& op, WatchedOp& watched, const at::Tensor& tensor, std::uint32_t slot,
             std::uint32_t token, int output);
  /// A collective wrote `slot`, put down at `token`, or will have when somebody has waited for it.
  void will_write(std::uint32_t slot, std::uint32_t token);
  /// … what it wrote is there now.
  void wrote_late(const at::Tensor& tensor, std::uint32_t slot, std::uint32_t token);
  /// Somebody wrote behind the dispatcher.
  void written_by_host(std::uint32_t slot) { ++of(slot).generation; }
  /// Arguments whose values are others than before the op, although it was not known to write them.
  std::vector<at::Tensor> rewritten(const WatchedOp& watched);
  /// The op is over: was it a birth?
  void after_op(const OpTraits& op, WatchedOp& watched, std::uint32_t index);

  /// Fills the rows of what lies on a device and judges the ops that made it. Waits for the device.
  void settle();
  /// Looks at all that the step read from outside and that nobody has looked at. While the step runs.
  void look_at_unseen();
  /// Ops whose overflow later ops hid are flagged by what became of it so far.
  void flag_hidden_overflows();
  /// The step is over: what was followed is let go.
  void rest();

  /// Row of stats(), once settled, with a hash of a tensor as it is now, for which the step has `slot`; kNone
  /// if it can't be had.
  std::int32_t look_now(const at::Tensor& tensor, std::uint32_t slot);
  /// Row of stats() that belongs to the token, kNone if it has none.
  std::int32_t stats_at(std::uint32_t token) const;
  const std::vector<StatsRow>& stats() const { return stats_rows_; }
  /// OpFlag bits that the values of an op gave it.
  std::uint32_t flags(std::uint32_t op) const { return op < flags_.size() ? flags_[op] : 0; }
  /// Whether some op's overflow is known to have changed a finite result.
  bool hides_damage() const { return !hidden_->harmful().empty(); }
  /// Non-finite values among what ops from `first` on wrote last into memory that is still there, in this
  /// phase, by the statistics taken so far.
  bool left_non_finite(std::size_t first, Phase phase) const;

 private:
  struct Seen {
    std::uint32_t token, slot;
    std::int32_t stats;
  };
  struct Known {  ///< statistics of a view of a storage, valid for one generation
    std::uint32_t generation;
    std::int32_t stats;
    DType dtype;
    std::int64_t offset;
    std::vector<std::int64_t> sizes, strides;
    bool contiguous, dense;  ///< in logical order; in any order, without gaps and overlaps
  };
  struct SlotValues {
    std::uint32_t generation = 0;  ///< grows with each write
    std::vector<Known> known;
    std::vector<std::size_t>
        first_seen;  ///< places in seen_ with statistics of first values, one for each view
  };
  enum class Likeness { none, same_elements, same };
  /// An op whose values nobody has seen yet.
  struct Unjudged {
    std::uint32_t op;
    bool inputs_finite, made_bad;
    std::vector<std::int32_t> in, out;
    std::vector<std::size_t> unseen;
  };
  static Likeness likeness(const Known& known, std::uint64_t count, const at::Tensor& tensor, bool contiguous,
                           bool dense);
  SlotValues& of(std::uint32_t slot);
  std::size_t see(std::uint32_t token, std::uint32_t slot, std::int32_t stats);
  std::int32_t add(const StatsRow& stats);
  bool waits(std::int32_t stats) const;
  /// A row for what a tensor on a device holds, to be filled later; kNone where that can't be.
  std::int32_t look_later(const at::Tensor& tensor, bool hash);
  /// Whether the op of this number is a birth, once all that it read and made is known.
  bool is_birth(std::uint32_t op, bool inputs_finite, bool made_bad, const std::vector<std::size_t>& unseen);
  bool any_bad(const std::vector<std::int32_t>& rows) const;
  bool any_infinite(const std::vector<std::int32_t>& rows) const;
  std::int32_t stats_for(const at::Tensor& tensor, std::uint32_t slot, Look look);
  /// First values of an outside storage are kept anyway and can be looked at when somebody wants to know.
  bool looked_at_later(std::uint32_t slot, Look look);
  /// Looks at the first values that a token, which was not looked at when it was read, says the op saw.
  void look_at_first_values(std::size_t seen);
  bool non_finite(std::int32_t stats) const;
  bool read_non_finite(const std::vector<std::size_t>& unseen);
  /// Looks at many tensors of one op with all threads; stats_for finds what was seen until the next call.
  void look_ahead(std::vector<at::Tensor> tensors, Look look);
  /// A tensor that an op reads and writes, as it is before: a copy where that costs little, or the first
  /// values that are kept anyway. Undefined where neither is to be had.
  at::Tensor before_written(const at::Tensor& tensor, bool asked);
  void keep_inputs(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs,
                   const std::vector<at::Tensor>& written, WatchedOp& watched);
  std::uint32_t& flags_of(std::uint32_t op);
  bool left_non_finite(std::uint32_t op) const;

  Step& step_;
  bool stacks_;
  OpenOverflows& open_;
  std::vector<Seen> seen_;  // in the order of the words
  std::vector<StatsRow> stats_rows_;
  std::vector<bool> waiting_;  // by row: on a device, not filled yet
  LaterScans later_;
  std::vector<std::int32_t> nobodys_;  // rows of memory that nobody has written
  std::vector<Unjudged> unjudged_;
  std::vector<SlotValues> slots_;
  std::vector<std::size_t> unseen_;  // places in seen_
  std::vector<std::uint32_t> flags_, bad_ops_;
  std::unordered_map<const c10::TensorImpl*, StatsRow> ready_;  // of the op at hand
  std::optional<HiddenOverflows> hidden_{std::in_place};
  BirthBudget births_;
};

}  // namespace nanquest::record
