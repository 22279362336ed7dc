/// Change: one counterfactual, ready to run: the step again with exactly one thing changed.
///
/// One file per kind of change (precision.cpp, data.cpp, guard.cpp, ...), and placebo.cpp. Each function
/// fills a RunOptions; `run_change` runs it and returns the outcome. A new kind is one file and its line
/// here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe/trace/samples.h"
#include "replay/counterfactual/source_edit.h"
#include "replay/lab/format_half.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/words.h"

namespace nanquest {

class Case;

/// How much of the step a change affects; a fix is minimal if no change of a smaller size is one.
enum class ChangeSize : std::uint8_t { op = 0, neighbours = 1, ops = 2, module = 3, step = 4 };

/// The cost of a change for the user, cheapest first.
enum class Price : std::uint8_t {
  other_format = 0,
  protect_op = 1,
  data_repair = 2,
  hyperparameter = 3,
  architecture = 4
};

struct Change {
  std::string text;  ///< "aten::mm in blocks.1.mlp computed in fp32"
  ChangeKind kind = ChangeKind::op;
  ChangeSize size = ChangeSize::op;
  Price price = Price::protect_op;
  RunOptions options;
  /// An irrelevant change of the same size; empty if the trace has no suitable op (then nothing can be
  /// verified).
  std::vector<RunOptions> placebo;  ///< none or one
  std::string placebo_text;
  std::optional<SourceEdit> edit = {};  ///< the same in the program; nothing if one line of it is not enough
  /// None, or one that goes further and is tried where this one does not help.
  std::vector<Change> otherwise = {};
};

/// Name of a precision as people write it: "fp32".
std::string precision_text(Precision precision);

// precision.cpp
/// The format for trying a step that goes wrong in a format shorter than fp32 (`narrow`) or in fp32: fp32 for
/// the former, but fp64 if fp32 is not enough. Runs the whole step in both, if that was not done yet.
Precision wider(const Case& c, bool narrow);
/// Whether the culprit's first result is of a format of 16 bits or fewer.
bool works_in_16_bits(const Case& c);
/// The half of a wider format that alone makes the whole step finite, while the other half does not; nothing
/// if neither or both do, or if the whole format doesn't either. Up to four runs of the step, each made once.
std::optional<FormatHalf> half_that_helps(const Case& c);
/// Only this op in `precision`. Placebo: another op of the same name, otherwise another op of about the same
/// size.
Change op_in(const Case& c, std::int32_t op, Precision precision);
/// This op and the ops that read its result: the smallest size at which a value too large for the format
/// survives its own op.
Change neighbours_in(const Case& c, std::int32_t op, Precision precision);
/// A module and everything below it, forward and backward. Placebo: another module beside it.
Change module_in(const Case& c, const std::string& path, Precision precision);
/// These ops and no others; `text` says which. Of size `op`: they belong together, such as a norm.
Change ops_in(const Case& c, const std::string& text, const std::vector<std::int32_t>& ops,
              Precision precision);
/// These ops and no others, which do not belong together.
Change set_in(const Case& c, const std::vector<std::int32_t>& ops, Precision precision);
/// Everything. Placebo: one module (or op) that has no part in the failure.
Change step_in(const Case& c, Precision precision);

// data.cpp
/// Where a value is that the step did not compute: in its storage when the step began, or in what the host
/// wrote into new memory while it ran.
struct OutsidePlace {
  std::int32_t slot;
  std::int32_t host_write = kNone;  ///< the op that stands for that write
};
/// Every non-finite element of an outside value becomes zero. Placebo: as many other elements of it do; if
/// there are none, the same on another outside value.
Change replace_non_finite(const Case& c, OutsidePlace place, const std::string& what);
/// The same in one of `batch` samples, which lie one after the other in the value's memory.
RunOptions mend_sample(OutsidePlace place, std::int64_t sample, std::int64_t batch);
/// The same for every other one of the non-finite elements.
RunOptions mend_every_other(OutsidePlace place);
/// The same with the value of the last healthy step. Placebo: everything else in which that step differed.
/// Nothing if the file has no such step, or not this value of it.
std::optional<Change> replace_by_healthy(const Case& c, OutsidePlace place, const std::string& what);
/// Every negative element of an outside value becomes its absolute value. Placebo: as above.
Change replace_negative(const Case& c, OutsidePlace place, const std::string& what);
/// Sample `sample` of every batch tensor becomes a copy of sample `donor`. Placebo: another sample is
/// replaced. Nothing if the batch dimension isn't known.
std::optional<Change> replace_samples(const Case& c, const std::vector<std::int64_t>& samples,
                                      std::int64_t donor);
/// Rows of the schema's `argument` of `op` that are -Inf (for a bool: false) in all of `dims` become zero
/// (true): the row is not masked. `in_place`: for later readers of the scores too.
Change open_masked_rows(const Case& c, std::int32_t op, std::string_view argument,
                        const std::vector<std::int64_t>& dims, bool in_place = false);

// guard.cpp
/// What a guard does to the bad elements of a tensor before an op reads it.
enum class Guard : std::uint8_t {
  zero_to_eps,        ///< exact zeros become the smallest normal number of the format: log(x + eps)
  zero_to_one,        ///< exact zeros become one: x / max(count, 1)
  minus_one_to_eps,   ///< -1 becomes -1 + eps: log1p
  zero_to_safe_root,  ///< exact zeros become a small number whose root has a finite derivative: sqrt(x + eps)
  unit_inwards,       ///< ±1 moves inwards: acos(x.clamp(-1 + eps, 1 - eps))
};
/// Guards the schema's `argument` of `op`: the op and its derivative read the guarded value, as in a program
/// with the guard; all other readers see the value as recorded. Placebo: as many other elements of that
/// argument get the same values; if there are none, the same guard on another op. `otherwise`, if there are
/// other readers: the guarded value for them too.
Change guard_argument(const Case& c, std::int32_t op, std::string_view argument, Guard guard);

/// Elements of the schema's `argument` of `op` outside [low, high] are clamped, including infinities (NaN: no
/// limit on that side); for the same readers as in guard_argument, with its placebo.
Change clamp_argument(const Case& c, std::int32_t op, std::string_view argument, double low, double high);
/// The matrices that `op` reads as `argument` get a small diagonal of different numbers: no longer singular,
/// no repeated eigenvalue. Placebo: the matrices doubled, which changes neither.
Change regularise_matrix(const Case& c, std::int32_t op, std::string_view argument);

// constant.cpp
/// Replaces a number argument of `op` (eps, a mask constant, a divisor), in `op` and in its derivative.
/// Placebo: another op in another format.
Change edit_constant(const Case& c, std::int32_t op, std::string_view argument, double from, double to);

// saturate.cpp
/// The result of `op` is computed one precision up and clamped to half the format's range. Placebo: the same
/// with another op.
Change saturate_result(const Case& c, std::int32_t op);

// skip.cpp
/// Skips the op as `if (count > 0)` around it would: its non-finite results become 0, and so do those of its
/// derivative. Placebo: the same with another op.
Change skip_op(const Case& c, std::int32_t op);

// branch.cpp
/// Where `mask` (over the result of `forward`) is true, `forward` and its backward read a number at which it
/// and its derivative are finite; all other elements, and all other readers of the same memory, keep the old
/// value: the inner where() of a "double where". Nothing if no such number is found. `reduced`:
/// reduced_dimensions of `forward`. Placebo: as many elements of another op's input.
std::optional<Change> safe_branch(const Case& c, std::int32_t forward, const at::Tensor& mask,
                                  const std::vector<std::int64_t>& reduced);
/// Where `op`, or another op of its name and phase, subtracts an infinity from the same infinity, both are
/// zero for that op only. Placebo: as many elements of another op's input.
Change equal_infinities(const Case& c, std::int32_t op);

// setting.cpp
/// A number argument of an op, and its new value.
struct Setting {
  std::string what;          ///< "the learning rate (alpha of aten::add_)"
  std::size_t position = 0;  ///< of the argument in the op's schema
  double found = 0, sane = 0;
};
/// Replaces the setting in every op of the same name that has the same number in the same place, and in its
/// derivative; a tensor of one element is replaced for all readers. Placebo: another op's input, scaled as
/// much.
Change replace_setting(const Case& c, std::int32_t op, const Setting& setting);
/// For a setting that is part of several numbers (a learning rate): every non-finite number argument of ops
/// of `phase` becomes 1 if it is a factor or a divisor, and 0 elsewhere. Placebo: as in replace_setting.
Change replace_bad_numbers(const Case& c, std::int32_t op, Phase phase);
/// The outside storage `slot`, of one element, becomes `sane`. Placebo: another storage of one element, or
/// one element of another.
Change replace_scalar(const Case& c, std::int32_t slot, const std::string& what, double sane);

// memory.cpp
/// The memory that `op` (kOpUninitialised) allocated, and what the host is recorded to have written there, is
/// `value` at the first read. Placebo: another op's result filled the same way, if there is one.
Change filled_memory(const Case& c, const std::vector<std::int32_t>& ops, double value);
/// `op` computed here from its recorded inputs, if its result here differs from the recorded one. Placebo:
/// the recorded result put back, as far as it is known.
Change computed_again(const Case& c, std::int32_t op);
/// The outside storage `slot` has zeros for its bad elements until `reader` reads it, and the file's content
/// after that. No placebo: this tests whether it fails.
Change changed_before(const Case& c, std::int32_t slot, std::int32_t reader);
/// The host's write `host_write` does not happen: the memory keeps what the step had read of it before.
Change undone_write(const Case& c, std::int32_t host_write);

// loss_scale.cpp
/// The step with the loss scale halved `halvings` times. Nothing if the trace shows no multiplication by the
/// scale.
std::optional<Change> smaller_loss_scale(const Case& c, int halvings);

// placebo.cpp
/// An op that computes floats and is not `op`, one of its readers, on its lineage, or one that made its
/// inputs; preferably one from which it was computed, further back (a change there could help), of the same
/// name, phase and size. kNone if the trace has none.
std::int32_t placebo_op(const Case& c, std::int32_t op);
/// An outside storage of floats whose bytes are in the file and that is not `slot`; kNone if there is none.
std::int32_t placebo_slot(const Case& c, std::int32_t slot);
/// A module with float ops that neither contains the culprit nor lies inside `path`, nor contains it; "" if
/// none.
std::string placebo_module(const Case& c, const std::string& path);
/// Fills `placebo` of a change that is not about formats: another op or module in `precision`.
void add_precision_placebo(const Case& c, Change& change, std::int32_t op, Precision precision);
/// For a change to wider formats: the same ops with only one half of it (format_half.h). If `needs` is what
/// was missing, that half helps as much, and the other half, which costs the same, must not.
Change half_of(const Case& c, const Change& change, FormatHalf half);

/// What a change does to a tensor, in place.
using Write = std::function<void(const at::Tensor&)>;
/// Such a change: non-finite elements become 0. Undefined and integer tensors stay.
void zero_non_finite(const at::Tensor& t);
/// `count` of the elements that are true in `from` (all of them if there are no more), spread evenly over the
/// samples; a mask.
at::Tensor spread_choice(const at::Tensor& from, std::int64_t count);
/// Applies to other, finite elements of `t` what `write` changes in some: as many of them get the same
/// values. Returns how many: 0 if `write` changes nothing or everything.
std::int64_t write_elsewhere(const at::Tensor& t, const Write& write);

// change.cpp
/// Both changes at once, and both placebos; size, price and kind are those of `a`. If both edit the same
/// thing, `a` is used.
Change together(Change a, const Change& b);
/// Runs it.
TrialResult run_change(const Case& c, const RunOptions& options);
/// Runs it, or returns the outcome of an earlier change of this case with the same text and places.
TrialResult run_change(const Case& c, const Change& change);

}  // namespace nanquest
