/// One recorded step: flat records of its ops, and the values that they need to run again.
///
/// A step knows storages by weak references (SlotIndex), so an address that two steps know is the same
/// storage in both: that is what a record of many steps without gaps (tape.h) is built on.
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
#include "probe/record/lent.h"
#include "probe/record/slots.h"
#include "probe/record/stacks.h"
#include "probe/record/words.h"

namespace nanquest::record {

/// One frontier op. Arguments and outputs are ranges of Step::words.
struct OpRecord {
  const OpTraits* traits = nullptr;
  const ModuleName* module = nullptr;  ///< null outside any
  const char* node = nullptr;          ///< of NodeContext::name; null outside backward
  std::uint32_t node_length = 0;
  std::int32_t micro_batch = 0;
  Phase phase = Phase::forward;
  bool opaque = false;     ///< an argument or output can't be rebuilt
  bool recompute = false;  ///< gradient checkpointing runs a forward pass again
  bool ended = false;
  std::uint32_t first_argument = 0, argument_words = 0, argument_tokens = 0;
  std::uint32_t first_output = 0, outputs = 0;  ///< returned tensors …
  std::uint32_t fresh = 0;  ///< so many of them in memory that the trace had not seen before: the op wrote it
  std::uint32_t written = 0;  ///< … and after them the arguments that the op wrote, as they were then
  bool returned_nothing = false;
  // Not compared with the last step's:
  std::int32_t generator = kNone;  ///< row of Step::generators
  std::int64_t sequence = -1;
  std::uint64_t thread = 0;   ///< of the sequence number
  std::int64_t made = -1;     ///< sequence number of the node that the op made …
  std::uint64_t made_by = 0;  ///< … and thread
};

/// OpFlag bits of an op as its record tells them (what its values add: ValueWatch::flags).
std::uint32_t op_flags(const OpRecord& op);

/// Bytes that somebody wrote behind the dispatcher, noticed when an op read them.
struct HostWrite {
  std::uint32_t slot;
  at::ScalarType type;
  Phase phase;
  std::size_t bytes;
  const std::byte* data;  ///< in the step's arena
  at::Tensor on_device;
};

/// A backward node met on a tensor that `writer` wrote, while the op `at` ran: its gradient is that op's.
struct MadeNode {
  std::uint32_t at, writer;
  std::uint64_t thread;
  std::int64_t sequence;
};

/// Where an op's output is kept: number among what it returned, or in its written range.
struct OutputPlace {
  std::uint32_t op, number;
  bool written;  ///< an argument
};

/// Something that an op returned or wrote which perhaps can't be run again: a copy, or lent.
struct OpaqueOutput {
  OutputPlace place;
  at::Tensor value;
  std::uint64_t hash = 0;  ///< of samples of its bytes, for what may come again; else 0
};

/// What a collective writes, or will have written when somebody has waited for it.
struct LateOutput {
  OutputPlace place;
  std::uint32_t slot, token;  ///< place of its token among the step's words
  std::uint32_t known;        ///< so many slots had the step then
  c10::Storage storage;
};

/// A number that an op gave to the host, which may decide by it.
struct HostRead {
  std::uint32_t op;
  double value;
  bool whole;  ///< a truth value or an integer
};

/// What is known of a gate that was passed, as TapeStep has it.
struct GateNote {
  std::int64_t step = 0;  ///< as the program counts
  double rate = 0;        ///< learning rate of the update that is next
  double loss = 0;        ///< what the gate saw as the loss, NaN for nothing
  double clip = 0;        ///< the norm that the host clips the gradients to; 0: it doesn't
  double grad_norm = 0;   ///< and theirs
};

/// A moment that a record of many steps has to know again: a gate was passed, or an update is over.
struct TapeMark {
  std::uint32_t op = 0;                               ///< the first op after it
  bool gate = true;                                   ///< false: the end of an update
  GateNote note = {};                                 ///< of a gate: what is known of it …
  std::uint32_t loss_op = UINT32_MAX, loss_slot = 0;  ///< … and the op that wrote its loss last, and where
};

/// What it took to record an update with the values that it overwrote.
struct UpdateCost {
  std::uint64_t bytes = 0;  ///< copied
  double seconds = 0;       ///< in all, copying included
  double copying = 0;       ///< seconds of it
  bool grew = false;        ///< memory was touched that the trace did not have before
};

class ValueWatch;

struct Step {
  Step();
  ~Step();
  std::int64_t number = 0;
  bool usable = false;  ///< its tables can be made
  bool talks = false;   ///< a collective was among its ops
  std::vector<OpRecord> ops;
  Words words;
  SlotIndex slots;
  std::vector<std::uint32_t> outside;  ///< slots that the step did not make, in order
  ValueArena values;
  std::vector<HostWrite> host_writes;
  std::vector<GeneratorState> generators;
  std::vector<OpaqueOutput> opaque;
  Lent lent;  ///< those of `opaque` that are no copies
  std::vector<LateOutput> late;
  std::uint64_t opaque_bytes = 0, kept_on_device = 0;  ///< of `opaque`, in all and in a device's memory
  std::vector<MadeNode> nodes;                         ///< those that OpRecord::made doesn't tell
  std::vector<std::shared_ptr<Stack>>
      stacks;  ///< per op; those past the last op are left over from an earlier step
  std::vector<HostRead> reads;
  std::vector<TapeMark> marks;
  bool of_tape = false;  ///< many steps in one, made when somebody asked (tape.h): memory is as it is now
  std::vector<std::string> notes;
  std::unique_ptr<ValueWatch> watch;  ///< null: nobody looks at values
  std::uint64_t held = 0,
                look_at = 0;  ///< bytes of storages referred to; at how many to look who else has them

  /// Forgets everything but memory (and records as the next step's template, if `records` is false).
  void let_go();
  void clear();
  std::size_t memory() const;
};

}  // namespace nanquest::record
