#include "probe/numerics/part_look.h"

#include <array>
#include <vector>

namespace nanquest {
namespace {

/// One group of threads: `first(t, mine)`, then what all of them found, merged.
template <class First>
LookFound group(std::span<const int> order, const First& first) {
  PartLook::Memory memory;
  const PartLook look(memory);
  std::array<LookFound, PartLook::kThreads> mine;
  for (const int t : order) first(t, mine[static_cast<std::size_t>(t)]);
  for (const int t : order) look.share(t, mine[static_cast<std::size_t>(t)]);
  for (const int t : order) look.merge_some(t);
  return look.merge_all();
}

}  // namespace

void look_here(std::span<const LookTable> tables, const LookNumbers& numbers, std::span<const int> order,
               double* found, float* word) {
  LookResults results{found, word, tensors_of(tables), 0};
  *word = 0;
  for (const LookTable& table : tables) {
    std::vector<LookFound> parts(table.parts());
    for (std::uint32_t part = 0; part < table.parts(); ++part)
      parts[part] = group(order, [&](int t, LookFound& mine) { PartLook::look(table, part, t, mine); });
    for (int i = 0; i < table.count; ++i)
      results.put(i, table.type[i], group(order, [&](int t, LookFound& mine) {
                    PartLook::gather(table, i, parts.data(), t, mine);
                  }));
    results.tensor += static_cast<std::uint64_t>(table.count);
  }
  for (const int t : order) results.put_number(numbers, t);
}

}  // namespace nanquest
