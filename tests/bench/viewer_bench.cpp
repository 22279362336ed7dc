// What makes a long run smooth to look at: extremes of a view from the pyramid against reading every value of
// it.
#include <cmath>
#include <vector>

#include "tests/bench/report.h"
#include "viewer/model/pyramid.h"

int main() {
  using namespace nanquest;
  constexpr std::size_t points = 4'000'000, pixels = 1200;
  std::vector<double> values(points);
  for (std::size_t i = 0; i < points; ++i)
    values[i] = i % 999'983 == 5 ? std::nan("") : std::sin(static_cast<double>(i) * 1e-3);
  const viewer::Pyramid pyramid{values};
  double keep = 0;
  const auto ratios = bench::paired_ratios(
      [&] {
        for (std::size_t p = 0; p < pixels; ++p)
          keep += pyramid.query(points * p / pixels, points * (p + 1) / pixels).max;
      },
      [&] {
        for (std::size_t p = 0; p < pixels; ++p) {
          viewer::Extremes all;
          for (std::size_t i = points * p / pixels; i < points * (p + 1) / pixels; ++i) all.add(values[i]);
          keep += all.max;
        }
      },
      15);
  bench::report("viewer/pyramid view of 4 M points", ratios, 0.1, bench::Better::lower);
  return keep > 0 ? 0 : 70;
}
