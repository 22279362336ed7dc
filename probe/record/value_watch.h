/// ValueWatch: what a watched step knows of the values that its ops read and wrote: statistics, hashes, and
/// which op made non-finite values from finite inputs. The recorder passes it every tensor after writing its
/// token. Steps that are not watched have none.
///
/// Statistics belong to tokens and are found by the index of the token among the step's words; they become a
/// row's when the tables are made (tables.h). Values that the step reads from outside are kept anyway and are
/// looked at on request, which never happens in a good step.
///
/// The step does not wait for a device: rows of device tensors are filled, and ops judged, on request
/// (`settle`). The inputs of such an op are gone by then. Whether it overflowed its format, and whether later
/// ops hid that, is checked by the next watched step (open_overflows.h).
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

/// What to find out about a tensor's values. A hash needs a walk in logical order: only what an op wrote gets
/// one.
enum class Look { nothing, values, values_and_hash };

/// What is kept about a watched op between its start and its end.
struct WatchedOp {
  std::vector<c10::IValue> inputs;  ///< as the op reads them: what it will write is copied
  HiddenOverflows::ReaderPtr reader;
  OpResults made;
  std::vector<std::size_t> unseen;  ///< what it reads that has not been looked at yet, as indices into
                                    ///< `seen_`
  struct Unsure {
    std::size_t seen;
    at::Tensor tensor;
  };
  std::vector<Unsure> unsure;                         ///< what a compiled region reads and may write
  std::vector<std::int32_t> waiting_in, waiting_out;  ///< rows that are not filled yet
  bool inputs_finite = true;
  bool inputs_kept = true;  ///< after the op has run, `inputs` are still what it read
  bool made_bad = false;
  bool asked = false;  ///< wait for it on a device
};

/// Not thread-safe: the recorder locks. Runs ATen ops; its owner keeps them from being observed.
class ValueWatch {
 public:
  /// Of `step`, which must outlive it, as must `open`. `stacks`: gather the stack of a birth that has none.
  ValueWatch(Step& step, bool stacks, OpenOverflows& open) : step_(step), stacks_(stacks), open_(open) {}

  /// An op is about to begin; its arguments are not recorded yet.
  void before_arguments(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
  /// An argument was recorded at `token`. `written`: the op will write it.
  void argument(const OpTraits& op, WatchedOp& watched, const at::Tensor& tensor, std::uint32_t slot,
                std::uint32_t token, bool read, bool written);
  /// All arguments were recorded, and the op's record is the step's last. `written`: those that the op will
  /// write.
  void before_op(const OpTraits& op, WatchedOp& watched, c10::ArrayRef<const c10::IValue> inputs,
                 const std::vector<at::Tensor>& written, bool opaque);
  /// The op has run; nothing of what it made is recorded yet.
  void before_outputs(const OpTraits& op, c10::ArrayRef<const c10::IValue> outputs,
                      const std::vector<at::Tensor>& written);
  /// It wrote `tensor`, recorded at `token`, as its output `output` (-1: an argument, not an output).
  void wrote(const OpTraits& op, WatchedOp& watched, const at::Tensor& tensor, std::uint32_t slot,
             std::uint32_t token, int output);
  /// A collective wrote `slot`, recorded at `token`; complete only after the program has waited for it.
  void will_write(std::uint32_t slot, std::uint32_t token);
  /// … its result is complete now.
  void wrote_late(const at::Tensor& tensor, std::uint32_t slot, std::uint32_t token);
  /// Memory was written without an op.
  void written_by_host(std::uint32_t slot) { ++of(slot).generation; }
  /// Arguments whose values changed during the op although it was not known to write them.
  std::vector<at::Tensor> rewritten(const WatchedOp& watched);
  /// The op is over: was it a birth?
  void after_op(const OpTraits& op, WatchedOp& watched, std::uint32_t index);

  /// Fills the rows of tensors on a device and judges the ops that made them. Waits for the device.
  void settle();
  /// Looks at everything that the step read from outside and that has not been looked at. While the step
  /// runs.
  void look_at_unseen();
  /// Flags ops whose overflow was hidden by later ops, as far as is known.
  void flag_hidden_overflows();
  /// The step is over: what was followed is dropped.
  void rest();

  /// Row of stats(), once settled, with a hash of a tensor as it is now, whose slot in the step is `slot`;
  /// kNone if that is not possible.
  std::int32_t look_now(const at::Tensor& tensor, std::uint32_t slot);
  /// Row of stats() that belongs to the token; kNone if there is none.
  std::int32_t stats_at(std::uint32_t token) const;
  const std::vector<StatsRow>& stats() const { return stats_rows_; }
  /// OpFlag bits that an op's values show.
  std::uint32_t flags(std::uint32_t op) const { return op < flags_.size() ? flags_[op] : 0; }
  /// Whether some op's overflow is known to have changed a finite result.
  bool hides_damage() const { return !hidden_->harmful().empty(); }
  /// Non-finite values that ops from `first` on, in this phase, wrote last into memory that is still alive,
  /// by the statistics taken so far.
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
        first_seen;  ///< indices into seen_ with statistics of first values, one for each view
  };
  enum class Likeness { none, same_elements, same };
  /// An op whose values have not been looked at yet.
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
  /// A row for a tensor on a device, to be filled later; kNone where that is not possible.
  std::int32_t look_later(const at::Tensor& tensor, bool hash);
  /// Whether the op of this number is a birth, once all its inputs and outputs are known.
  bool is_birth(std::uint32_t op, bool inputs_finite, bool made_bad, const std::vector<std::size_t>& unseen);
  bool any_bad(const std::vector<std::int32_t>& rows) const;
  bool any_infinite(const std::vector<std::int32_t>& rows) const;
  std::int32_t stats_for(const at::Tensor& tensor, std::uint32_t slot, Look look);
  /// First values of an outside storage are kept anyway and can be looked at on request.
  bool looked_at_later(std::uint32_t slot, Look look);
  /// Looks at the first values that an op saw through a token which was not looked at when it was recorded.
  void look_at_first_values(std::size_t seen);
  bool non_finite(std::int32_t stats) const;
  bool read_non_finite(const std::vector<std::size_t>& unseen);
  /// Looks at many tensors of one op with all threads; stats_for finds the results until the next call.
  void look_ahead(std::vector<at::Tensor> tensors, Look look);
  /// A tensor that an op reads and writes, as it was before: a copy where that is cheap, or the first values
  /// that are kept anyway. Undefined if neither is available.
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
  std::vector<std::int32_t> nobodys_;  // rows of uninitialised memory
  std::vector<Unjudged> unjudged_;
  std::vector<SlotValues> slots_;
  std::vector<std::size_t> unseen_;  // indices into seen_
  std::vector<std::uint32_t> flags_, bad_ops_;
  std::unordered_map<const c10::TensorImpl*, StatsRow> ready_;  // of the current op
  std::optional<HiddenOverflows> hidden_{std::in_place};
  BirthBudget births_;
};

}  // namespace nanquest::record
