/// Loss, gradient norm and learning rate of training runs that never were: many shapes of healthy ones, and
/// what can go wrong in them. Each is made from formulas and a seed alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "probe/step/run_band.h"

namespace nanquest::testing {

/// Random numbers of one run.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  double normal(double spread = 1) { return spread * normal_(random_); }
  double uniform(double low = 0, double high = 1) { return low + (high - low) * uniform_(random_); }
  bool chance(double probability) { return uniform() < probability; }
  /// Heavy-tailed, at least 1.
  double pareto(double exponent) { return std::pow(1 - uniform(), -1 / exponent); }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

struct MadeRun {
  std::string name;
  /// Figures of step `i`; may keep state.
  std::function<StepFigures(std::int64_t i, Draw& draw)> step;
};

inline StepFigures figures(std::int64_t step, double loss, double norm, double rate) {
  return {.step = step,
          .loss = loss,
          .norm = norm,
          .rate = rate,
          .weights = 10 + 1e-4 * static_cast<double>(step),
          .moved = 1e-3};
}

inline double cosine(std::int64_t i, std::int64_t period) {
  return 0.5 * (1 + std::cos(M_PI * static_cast<double>(i % period) / static_cast<double>(period)));
}

/// Noise that changes slowly.
struct Slow {
  double keep, spread, value = 0;
  double next(Draw& draw) { return value = keep * value + draw.normal(spread); }
};

/// The shapes that the constants of Band and RunBand were chosen with.
inline std::vector<MadeRun> calibrated_runs() {
  using std::exp;
  std::vector<MadeRun> runs;
  runs.push_back({"language model, warm-up and cosine", [](std::int64_t i, Draw& d) {
                    const double rate = i < 500 ? static_cast<double>(i + 1) / 500 : cosine(i - 500, 9500);
                    const double level = 3 + 7.8 * exp(-static_cast<double>(i) / 300);
                    return figures(i, level * exp(d.normal(0.03)),
                                   (0.4 + 3 * exp(-static_cast<double>(i) / 200)) * exp(d.normal(0.2)), rate);
                  }});
  runs.push_back({"language model, clipped", [](std::int64_t i, Draw& d) {
                    const double level = 2.5 + 2 * exp(-static_cast<double>(i) / 800);
                    return figures(i, level + d.normal(0.1),
                                   std::min(1.0, 0.9 * exp(d.normal(0.3))) + 1e-8 * d.normal(), 1e-4);
                  }});
  runs.push_back({"pictures, small batches", [](std::int64_t i, Draw& d) {
                    const double level = 0.3 + 2 * exp(-static_cast<double>(i) / 1000);
                    return figures(i, level * exp(d.normal(0.5)), level * exp(d.normal(0.6)),
                                   0.1 * cosine(i, 10000));
                  }});
  runs.push_back({"warm restarts", [](std::int64_t i, Draw& d) {
                    const double rate = cosine(i, 1000);
                    const double level = 0.05 + 0.6 * rate * rate + 2 * exp(-static_cast<double>(i) / 300);
                    return figures(i, level * exp(d.normal(0.1)), level * exp(d.normal(0.2)),
                                   0.1 * rate + 1e-5);
                  }});
  runs.push_back({"batches of one", [](std::int64_t i, Draw& d) {
                    return figures(i, 0.2 * d.pareto(2.5) * exp(-static_cast<double>(i) / 20000),
                                   0.5 * d.pareto(2), 1e-3);
                  }});
  runs.push_back({"nearly solved", [](std::int64_t i, Draw& d) {
                    const double level = 2.3 * exp(-static_cast<double>(i) / 150) + 1e-4;
                    const double hard = d.chance(0.03) ? d.uniform(0, 0.4) : 0;
                    return figures(i, level * exp(d.normal(0.7)) + hard,
                                   level * exp(d.normal(0.7)) + 3 * hard, 1e-3);
                  }});
  runs.push_back({"hinge, mostly zero", [](std::int64_t i, Draw& d) {
                    const double loss = std::max(0.0, exp(-static_cast<double>(i) / 400) + d.normal(0.15));
                    return figures(i, loss, loss > 0 ? 1 + d.normal(0.1) : 0, 1e-2);
                  }});
  runs.push_back({"policy gradient", [](std::int64_t i, Draw& d) {
                    return figures(i, d.normal(0.02) * d.pareto(4), 0.5 * d.pareto(3), 3e-4);
                  }});
  runs.push_back({"values of a policy, rewards found late", [](std::int64_t i, Draw& d) {
                    const double level = 0.1 + 30 / (1 + exp(-(static_cast<double>(i) - 3000) / 400));
                    return figures(i, level * exp(d.normal(0.6)), level * exp(d.normal(0.7)), 3e-4);
                  }});
  runs.push_back({"generator against critic", [g = Slow{0.995, 0.05}](std::int64_t i, Draw& d) mutable {
                    const double level = 0.7 + 3 * (1 - exp(-static_cast<double>(i) / 500)) + g.next(d);
                    return figures(i, std::abs(level) * exp(d.normal(0.3)),
                                   (1 + std::abs(level)) * exp(d.normal(0.5)), 2e-4);
                  }});
  runs.push_back({"critic with a signed loss", [g = Slow{0.99, 0.2}](std::int64_t i, Draw& d) mutable {
                    return figures(i, -3 + g.next(d) + d.normal(0.5), 10 * exp(d.normal(0.4)), 5e-5);
                  }});
  return runs;
}

/// Shapes that no constant was chosen with.
inline std::vector<MadeRun> other_runs() {
  using std::exp;
  std::vector<MadeRun> runs;
  runs.push_back({"rate in steps, loss falls at each", [](std::int64_t i, Draw& d) {
                    const double rate = i < 3000   ? 0.1
                                        : i < 6000 ? 0.01
                                                   : 0.001,
                                 level = i < 3000   ? 1.2
                                         : i < 6000 ? 0.5
                                                    : 0.35;
                    return figures(i, (level + exp(-static_cast<double>(i) / 200)) * exp(d.normal(0.15)),
                                   level * exp(d.normal(0.25)), rate);
                  }});
  runs.push_back({"epochs of 200 steps, memorised", [](std::int64_t i, Draw& d) {
                    const double level = 3 * std::pow(0.93, static_cast<double>(i / 200)) + 0.02;
                    return figures(i, level * exp(d.normal(0.08)), level * exp(d.normal(0.3)), 1e-4);
                  }});
  runs.push_back({"log likelihood of a density", [](std::int64_t i, Draw& d) {
                    return figures(i,
                                   50 * exp(-static_cast<double>(i) / 500) - 20 + d.normal(1) +
                                       d.normal(1) * d.normal(1),
                                   5 * exp(d.normal(0.5)), 1e-3);
                  }});
  runs.push_back({"diffusion, by noise level", [](std::int64_t i, Draw& d) {
                    const double t = d.uniform();
                    return figures(
                        i, 0.01 + 0.5 * t * t * exp(d.normal(0.4)) + exp(-static_cast<double>(i) / 100),
                        0.1 + t * exp(d.normal(0.5)), 1e-4);
                  }});
  runs.push_back({"a penalty in every sixteenth step", [](std::int64_t i, Draw& d) {
                    return figures(i, (i % 16 == 0 ? 8 : 0.7) * exp(d.normal(0.2)),
                                   (i % 16 == 0 ? 30 : 1) * exp(d.normal(0.3)), 2e-3);
                  }});
  runs.push_back({"the last batch of an epoch is small", [](std::int64_t i, Draw& d) {
                    const double spread = i % 157 == 156 ? 0.5 : 0.08;
                    return figures(i, 0.8 * exp(d.normal(spread)), 1.5 * exp(d.normal(2 * spread)), 1e-3);
                  }});
  runs.push_back({"one cycle of the rate", [](std::int64_t i, Draw& d) {
                    const double at = static_cast<double>(i) / 10000,
                                 rate = at < 0.3 ? at / 0.3 : std::max(0.0, (1 - at) / 0.7);
                    const double level = 0.3 + 1.2 * rate + 3 * exp(-static_cast<double>(i) / 150);
                    return figures(i, level * exp(d.normal(0.06)), level * exp(d.normal(0.2)),
                                   0.01 * rate + 1e-6);
                  }});
  runs.push_back({"two tasks by turns", [](std::int64_t i, Draw& d) {
                    const bool long_rows = (i / 50) % 2;
                    return figures(i, (long_rows ? 2.6 : 1.1) * exp(d.normal(0.05)),
                                   (long_rows ? 0.4 : 1.2) * exp(d.normal(0.2)), 1e-4);
                  }});
  runs.push_back({"a loss that wanders", [w = Slow{0.9995, 0.02}](std::int64_t i, Draw& d) mutable {
                    return figures(i, exp(w.next(d)) * exp(d.normal(0.02)), exp(d.normal(0.3)), 1e-3);
                  }});
  runs.push_back({"norms that grow", [](std::int64_t i, Draw& d) {
                    return figures(i, (0.5 + 2 * exp(-static_cast<double>(i) / 600)) * exp(d.normal(0.1)),
                                   0.2 * exp(static_cast<double>(i) / 2500) * exp(d.normal(0.2)), 1e-3);
                  }});
  runs.push_back({"sequences of all lengths, summed", [](std::int64_t i, Draw& d) {
                    return figures(i, exp(d.uniform(2, 6)) * (0.5 + 2 * exp(-static_cast<double>(i) / 700)),
                                   exp(d.uniform(0, 4)), 1e-3);
                  }});
  return runs;
}

}  // namespace nanquest::testing
