// TwinBatch: how far a step ran the same ops on the same places as the healthy one.
#include <algorithm>
#include <cstring>

#include "probe/record/memory_views.h"
#include "probe/record/token_pair.h"
#include "probe/record/twin.h"

namespace nanquest::record {
namespace {

bool only_views(const OpRecord& op) {
  return op.ended && op.outputs > 0 && op.fresh + op.written == 0;
}

/// Whether a small value from outside is what the twin had in its place.
bool same_bytes(const TwinCopy* copy, const SlotRecord& slot) {
  if (!copy || !copy->known || copy->on_device.defined() || copy->bytes != slot.first_bytes) return false;
  return slot.saved && std::memcmp(copy->room.get(), slot.saved, slot.first_bytes) == 0;
}

}  // namespace

TwinMatch TwinBatch::match(const Step& step, const std::function<bool(std::uint32_t)>& is_update) const {
  TwinMatch match;
  match.places.resize(step.slots.size());
  if (round_ < 0) return match;
  const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(op_count_, step.ops.size()));
  for (; match.ops < end; ++match.ops) {
    const OpRecord& ours = ops()[match.ops];
    const OpRecord& theirs = step.ops[match.ops];
    if (ours.traits != theirs.traits || ours.argument_tokens != theirs.argument_tokens) return match;
    const bool update = is_update(match.ops);
    // What a view shows is decided by the op that reads it.
    const bool view = only_views(ours) && only_views(theirs);
    TokenPair pair(words(), ours.first_argument, step.words, theirs.first_argument);
    std::size_t host_writes = match.host_writes;
    for (std::uint32_t i = 0; i < theirs.argument_tokens; ++i) {
      const auto token = pair.next(update || view);
      if (!token) return match;
      if (token->header.kind != ArgKind::tensor || !token->header.slot_known()) continue;
      if (token->header.flags & kHostWriteBefore) ++host_writes;
      if (view) continue;
      const auto slot = static_cast<std::uint32_t>(token->header.number);
      if (token->shift != 0 && step.slots[slot].produced) return match;
      TwinMatch::Place& place = match.places[slot];
      if (place.first == TwinMatch::kNever) {
        place = {match.ops, token->shift, (token->header.flags & kTensorWrappedNumber) != 0};
        if (place.number && !step.slots[slot].produced && !update &&
            !same_bytes(value(slot), step.slots[slot]))
          return match;
      } else if (place.shift != token->shift) {
        return match;
      }
    }
    match.host_writes = host_writes;
  }
  return match;
}

}  // namespace nanquest::record
