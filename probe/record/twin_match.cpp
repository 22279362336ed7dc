// TwinBatch: how far a step ran the same ops on the same places as the healthy one.
#include <algorithm>
#include <cstring>
#include <optional>

#include "probe/record/memory_views.h"
#include "probe/record/twin.h"

namespace nanquest::record {
namespace {

/// Reads the arguments of one op of both steps side by side.
class Pair {
 public:
  Pair(const Words& a, std::uint32_t first_a, const Words& b, std::uint32_t first_b)
      : a_(a.at(first_a)), b_(b.at(first_b)) {}

  /// What the next token of both is, if they are alike. A tensor may lie in another part of its storage.
  struct Token {
    Header header;
    std::int64_t shift = 0;  ///< bytes, from the first step's part to the second's
  };
  std::optional<Token> next(bool numbers_may_differ) {
    const Header a = a_.header(), b = b_.header();
    const bool same = std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    const bool flips = a.kind == ArgKind::boolean && b.kind == ArgKind::boolean && numbers_may_differ;
    if (!same && !flips) return std::nullopt;
    Token token{a};
    switch (a.kind) {
      case ArgKind::tensor: {
        if (a.flags & kTensorUndefined) break;
        const bool sized = !(a.flags & kTensorOpaque);
        if (sized)
          token.shift =
              (b_.value<std::int64_t>() - a_.value<std::int64_t>()) *
              static_cast<std::int64_t>(c10::elementSize(static_cast<at::ScalarType>(a.scalar_type)));
        const std::size_t numbers = (sized ? 2u : 1u) * a.dim;
        if (!equal(a_.numbers(numbers), b_.numbers(numbers), numbers)) return std::nullopt;
        break;
      }
      case ArgKind::integer:
      case ArgKind::real:
        if (!word() && !numbers_may_differ) return std::nullopt;
        break;
      case ArgKind::complex: {
        const bool real = word(), imaginary = word();
        if (!(real && imaginary) && !numbers_may_differ) return std::nullopt;
        break;
      }
      case ArgKind::string: {
        const auto length = static_cast<std::size_t>(a.number);
        if (std::memcmp(a_.text(length), b_.text(length), length) != 0) return std::nullopt;
        break;
      }
      case ArgKind::list:
      case ArgKind::opaque:
        if (!word()) return std::nullopt;
        break;
      case ArgKind::none:
      case ArgKind::boolean:
      case ArgKind::device:
      case ArgKind::generator:
        break;
    }
    return token;
  }

 private:
  bool word() { return a_.value<std::uint64_t>() == b_.value<std::uint64_t>(); }
  static bool equal(const std::int64_t* a, const std::int64_t* b, std::size_t count) {
    return count == 0 || std::memcmp(a, b, count * sizeof *a) == 0;
  }
  Reader a_, b_;
};

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
    // What a view shows is told by who reads it.
    const bool view = only_views(ours) && only_views(theirs);
    Pair pair(words(), ours.first_argument, step.words, theirs.first_argument);
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
