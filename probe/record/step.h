/// One recorded step: flat records of its ops, and the values needed to run them again.
///
/// A step knows storages by weak references (SlotIndex), so an address that appears in two steps is the same
/// storage in both. The record of many steps without gaps (tape.h) relies on that.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probe/observe/module_scope.h"
#include "probe/observe/op_traits.h"
#include "probe/record/arena.h"
#include "probe/record/generators.h"
#include "probe/record/kept_outputs.h"
#include "probe/record/slots.h"
#include "probe/record/stacks.h"
#include "probe/record/words.h"

namespace nanquest::record {

/// One frontier op. Arguments and outputs are ranges of Step::words.
struct OpRecord {
  const OpTraits* traits = nullptr;
  const ModuleName* module = nullptr;  ///< null outside any module
  const char* node = nullptr;          ///< of NodeContext::name; null outside backward
  std::uint32_t node_length = 0;
  std::int32_t micro_batch = 0;
  Phase phase = Phase::forward;
  bool opaque = false;     ///< an argument or output can't be rebuilt
  bool recompute = false;  ///< gradient checkpointing recomputes a forward pass
  bool ended = false;
  std::uint32_t first_argument = 0, argument_words = 0, argument_tokens = 0;
  std::uint32_t first_output = 0, outputs = 0;  ///< number of returned tensors …
  std::uint32_t fresh = 0;    ///< … of which this many are in memory new to the trace: the op wrote it
  std::uint32_t written = 0;  ///< … followed by the arguments that the op wrote, as they were afterwards
  bool returned_nothing = false;
  // Not compared with the last step:
  std::int32_t generator = kNone;  ///< row of Step::generators
  std::int64_t sequence = -1;
  std::uint64_t thread = 0;   ///< of the sequence number
  std::int64_t made = -1;     ///< sequence number of the node that the op created …
  std::uint64_t made_by = 0;  ///< … and its thread
};

/// OpFlag bits that an op's record shows. ValueWatch::flags adds those that its values show.
std::uint32_t op_flags(const OpRecord& op);

/// Bytes that were written without an op, noticed when an op read them.
struct HostWrite {
  std::uint32_t slot;
  at::ScalarType type;
  Phase phase;
  std::size_t bytes;
  const std::byte* data;  ///< in the step's arena
  at::Tensor on_device;
};

/// While op `at` ran, a backward node was found on a tensor that `writer` wrote: its gradient belongs to that
/// op.
struct MadeNode {
  std::uint32_t at, writer;
  std::uint64_t thread;
  std::int64_t sequence;
};

/// What a collective writes, complete only after the program has waited for it.
struct LateOutput {
  OutputPlace place;
  std::uint32_t slot, token;  ///< index of its token among the step's words
  std::uint32_t known;        ///< number of slots of the step at that moment
  c10::Storage storage;
};

/// A number that an op returned to the host, which may branch on it.
struct HostRead {
  std::uint32_t op;
  double value;
  bool whole;  ///< a boolean or an integer
};

/// What is known of a gate that was passed, as in TapeStep.
struct GateNote {
  std::int64_t step = 0;  ///< step number, as the program counts
  double rate = 0;        ///< learning rate of the update that is next
  double loss = 0;        ///< what the gate took as the loss; NaN for none
  double clip = 0;        ///< the norm to which the host clips gradients; 0: no clipping
  double grad_norm = 0;   ///< and theirs
};

/// A moment that a record of many steps must keep: a passed gate, or the end of an update.
struct TapeMark {
  std::uint32_t op = 0;                               ///< index of the first op after it
  bool gate = true;                                   ///< false: the end of an update
  GateNote note = {};                                 ///< for a gate: what is known of it …
  std::uint32_t loss_op = UINT32_MAX, loss_slot = 0;  ///< … and the op that last wrote its loss, and where
};

/// What recording an update with the overwritten values cost.
struct UpdateCost {
  std::uint64_t bytes = 0;  ///< bytes copied
  double seconds = 0;       ///< seconds in all, copying included
  double copying = 0;       ///< seconds of copying
  bool grew = false;        ///< memory was touched that the trace did not have before
};

class ValueWatch;

struct Step {
  Step();
  ~Step();
  std::int64_t number = 0;
  bool usable = false;   ///< tables can be made of it
  bool talks = false;    ///< a collective is among its ops
  bool at_once = false;  ///< no op ran unrecorded between the end of the step before and this one
  std::uint32_t updated_at =
      UINT32_MAX;  ///< first op after its last update, as far as the end of that is known
  std::uint32_t backward_at = UINT32_MAX;  ///< its first op inside a backward node
  std::vector<OpRecord> ops;
  Words words;
  SlotIndex slots;
  std::vector<std::uint32_t> outside;  ///< slots that the step did not make, in order
  ValueArena values;
  std::vector<HostWrite> host_writes;
  std::vector<GeneratorState> generators;
  KeptOutputs kept;  ///< of ops that may not be repeatable (unrepeatable.h)
  std::vector<LateOutput> late;
  std::vector<MadeNode> nodes;  ///< those that OpRecord::made does not show
  std::vector<std::shared_ptr<Stack>>
      stacks;  ///< per op; entries past the last op are left over from an earlier step
  std::vector<HostRead> reads;
  std::vector<TapeMark> marks;
  bool of_tape = false;  ///< several steps in one, made on request (tape.h): memory is as it is now
  std::vector<std::string> notes;
  std::unique_ptr<ValueWatch> watch;  ///< null: values are not looked at
  std::uint64_t held = 0,
                look_at = 0;  ///< bytes of referenced storages; and the size at which their owners are
                              ///< checked

  /// Clears everything but keeps the memory (and, if `records` is false, the records, as the next step's
  /// template).
  void let_go();
  void clear();
  std::size_t memory() const;
};

}  // namespace nanquest::record
