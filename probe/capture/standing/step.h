/// One recorded step: flat records of its ops, and the values that they need to run again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probe/capture/stacks.h"
#include "probe/capture/standing/generators.h"
#include "probe/capture/standing/slots.h"
#include "probe/capture/standing/values.h"
#include "probe/capture/standing/words.h"
#include "probe/observe/module_scope.h"
#include "probe/observe/op_traits.h"

namespace nanquest::standing {

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
  std::uint32_t written = 0;  ///< … and after them the arguments that the op wrote, as they were then
  bool returned_nothing = false;
  // Not compared with the last step's:
  std::int32_t generator = kNone;  ///< row of Step::generators
  std::int64_t sequence = -1;
  std::uint64_t thread = 0;   ///< of the sequence number
  std::int64_t made = -1;     ///< sequence number of the node that the op made …
  std::uint64_t made_by = 0;  ///< … and thread
};

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

/// A copy of something that an op returned or wrote which perhaps can't be run again.
struct OpaqueOutput {
  std::uint32_t op, number;  ///< among what it returned, or in its written range
  bool written;              ///< an argument
  at::Tensor value;
};

/// What it took to record an update with the values that it overwrote.
struct UpdateCost {
  std::uint64_t bytes = 0;  ///< copied
  double seconds = 0;       ///< in all, copying included
  double copying = 0;       ///< seconds of it
  bool grew = false;        ///< memory was touched that the trace did not have before
};

struct Step {
  std::int64_t number = 0;
  bool usable = false;  ///< its tables can be made
  std::vector<OpRecord> ops;
  Words words;
  SlotIndex slots;
  ValueArena values;
  std::vector<HostWrite> host_writes;
  std::vector<GeneratorState> generators;
  std::vector<OpaqueOutput> opaque;
  std::vector<MadeNode> nodes;  ///< those that OpRecord::made doesn't tell
  std::vector<std::shared_ptr<Stack>>
      stacks;  ///< per op; those past the last op are left over from an earlier step
  std::vector<std::string> notes;
  std::uint64_t held = 0,
                look_at = 0;  ///< bytes of storages referred to; at how many to look who else has them

  /// Forgets everything but memory (and records as the next step's template, if `records` is false).
  void let_go();
  void clear();
  std::size_t memory() const;
};

}  // namespace nanquest::standing
