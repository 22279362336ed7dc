/// ddmin: the smallest set of suspects that still passes a test (Zeller & Hildebrandt 2002, "Simplifying and
/// isolating failure-inducing input"), 1-minimal: leaving out any single one fails.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace nanquest {

/// `test(all)` must be true. Earlier elements are preferred over later ones. At most `budget` calls; the
/// remaining set still passes the test. The number of calls goes into `calls`.
template <class T>
std::vector<T> ddmin(std::vector<T> set, const std::function<bool(const std::vector<T>&)>& test, int budget,
                     int* calls = nullptr) {
  int used = 0;
  const auto passes = [&](const std::vector<T>& s) { return ++used, test(s); };
  std::size_t parts = 2;
  while (set.size() > 1 && used < budget) {
    const std::size_t chunk = (set.size() + parts - 1) / parts;
    bool reduced = false;
    for (std::size_t begin = 0; begin < set.size() && used < budget && !reduced; begin += chunk) {
      const std::size_t end = std::min(begin + chunk, set.size());
      const std::vector<T> part(set.begin() + static_cast<std::ptrdiff_t>(begin),
                                set.begin() + static_cast<std::ptrdiff_t>(end));
      if (passes(part)) set = part, parts = 2, reduced = true;
    }
    for (std::size_t chunks = (set.size() + chunk - 1) / chunk;
         parts > 2 && chunks-- > 0 && used < budget && !reduced;) {
      const auto begin = static_cast<std::ptrdiff_t>(chunks * chunk);
      const auto end = static_cast<std::ptrdiff_t>(std::min((chunks + 1) * chunk, set.size()));
      std::vector<T> rest(set.begin(), set.begin() + begin);
      rest.insert(rest.end(), set.begin() + end, set.end());
      if (!rest.empty() && passes(rest))
        set = rest, parts = std::max<std::size_t>(2, parts - 1), reduced = true;
    }
    if (reduced) continue;
    if (parts >= set.size()) break;
    parts = std::min(set.size(), parts * 2);
  }
  if (calls) *calls = used;
  return set;
}

}  // namespace nanquest
