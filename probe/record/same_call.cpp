#include "probe/record/same_call.h"

#include <cstring>

#include "probe/record/token_pair.h"

namespace nanquest::record {
namespace {

bool same_arguments(const OpRecord& a, const Words& words_a, const OpRecord& b, const Words& words_b,
                    bool slots_may_differ) {
  if (a.argument_words != b.argument_words) return false;
  if (std::memcmp(words_a.at(a.first_argument), words_b.at(b.first_argument),
                  a.argument_words * sizeof(std::uint64_t)) == 0)
    return true;
  // Number arguments of an optimizer's ops change with the learning rate and with time.
  const bool updates = a.phase == Phase::optimizer;
  if (!(updates || slots_may_differ) || a.argument_tokens != b.argument_tokens) return false;
  TokenPair pair(words_a, a.first_argument, words_b, b.first_argument);
  for (std::uint32_t i = 0; i < a.argument_tokens; ++i)
    if (const auto token = pair.next(/*numbers_may_differ=*/updates, slots_may_differ);
        !token || token->shift != 0)
      return false;
  return true;
}

}  // namespace

bool same_call(const Step& a, std::uint32_t op_a, const Step& b, std::uint32_t op_b) {
  const OpRecord &ours = a.ops[op_a], &theirs = b.ops[op_b];
  return ours.traits == theirs.traits && ours.module == theirs.module && ours.node == theirs.node &&
         ours.micro_batch == theirs.micro_batch && ours.phase == theirs.phase &&
         same_arguments(ours, a.words, theirs, b.words, /*slots_may_differ=*/op_a != op_b);
}

}  // namespace nanquest::record
