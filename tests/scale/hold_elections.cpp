// usage: hold_elections RUN STEP RANKS [RANK…]
// Holds the election of a step in a run directory for every rank except the listed ones, which have already
// taken part.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "tests/scale/elections.h"

int main(int argc, char** argv) {
  using namespace nanquest;
  using namespace nanquest::testing;
  if (argc < 4) return 2;
  const std::int64_t step = std::atoll(argv[2]);
  std::vector<Voter> voters(static_cast<std::size_t>(std::atoi(argv[3])));
  for (Voter& voter : voters)
    voter.row = {.standing = Standing::arrived,
                 .collectives = 7,
                 .text = "c10d::allreduce_ (after_backward) brought NaN"};
  std::set<std::int32_t> been;
  for (int i = 4; i < argc; ++i) been.insert(std::atoi(argv[i]));
  std::size_t whole = 0;
  for (const Vote& vote :
       hold_elections(argv[1], step, voters, [&](std::int32_t rank) { return been.count(rank) == 0; }))
    whole += vote.held && vote.whole;
  std::printf("%zu of %zu would write a whole file\n", whole, voters.size() - been.size());
  return 0;
}
