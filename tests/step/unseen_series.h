/// More healthy shapes, written when the constants of Band and RunBand stood, and run once.
#pragma once

#include "tests/step/made_series.h"

namespace nanquest::testing {

inline std::vector<MadeRun> unseen_runs() {
  using std::exp;
  std::vector<MadeRun> runs;
  runs.push_back({"mixture of experts, balance lost now and then", [](std::int64_t i, Draw& d) {
                    const double extra = d.chance(0.01) ? d.uniform(0, 0.3) : 0;
                    return figures(
                        i, (2.2 + 2 * exp(-static_cast<double>(i) / 900)) * exp(d.normal(0.02)) + extra,
                        (0.5 + extra) * exp(d.normal(0.25)), 3e-4);
                  }});
  runs.push_back({"speech, rows sorted by length in each epoch", [](std::int64_t i, Draw& d) {
                    const double length = 0.3 + 1.4 * static_cast<double>(i % 400) / 400;
                    return figures(
                        i, (40 + 200 * exp(-static_cast<double>(i) / 500)) * length * exp(d.normal(0.1)),
                        20 * length * exp(d.normal(0.4)), 5e-4);
                  }});
  runs.push_back({"a curriculum of ten lengths", [](std::int64_t i, Draw& d) {
                    const double level = 0.4 + 0.25 * static_cast<double>(i / 1000) +
                                         0.3 * exp(-static_cast<double>(i % 1000) / 60);
                    return figures(i, level * exp(d.normal(0.12)), level * exp(d.normal(0.3)), 1e-3);
                  }});
  runs.push_back({"temporal differences with a copied target", [](std::int64_t i, Draw& d) {
                    const double since = static_cast<double>(i % 500);
                    return figures(i, (0.2 + 0.6 * exp(-since / 40)) * d.pareto(3), d.pareto(2.5), 2.5e-4);
                  }});
  runs.push_back({"contrastive pairs, rare false negatives", [](std::int64_t i, Draw& d) {
                    return figures(i, 0.05 + 4 * exp(-static_cast<double>(i) / 700) + 0.02 * d.pareto(2),
                                   0.3 * d.pareto(3), 1e-3);
                  }});
  runs.push_back({"linear warm-up from zero, plateau first", [](std::int64_t i, Draw& d) {
                    const double level = i < 600 ? 4.6 : 1 + 3.6 * exp(-static_cast<double>(i - 600) / 150);
                    return figures(i, level * exp(d.normal(0.01)), (i < 600 ? 0.1 : 1.2) * exp(d.normal(0.2)),
                                   std::min(1.0, static_cast<double>(i) / 1000));
                  }});
  return runs;
}

}  // namespace nanquest::testing
