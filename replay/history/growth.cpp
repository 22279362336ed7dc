#include "replay/history/growth.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "replay/history/columns.h"
#include "replay/history/trend.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr int kMinPoints = 8, kMinRisingPoints = 5;
/// Expected number of reported series that grew by chance only.
constexpr double kChanceShare = 0.05;
constexpr std::size_t kWindows[] = {64, 16};
constexpr double kRisingShare = 0.75;
/// A series that each of the last steps multiplied by this much runs away, however few the steps are: no data
/// does that twice in a row.
constexpr double kRunaway = 16;
constexpr std::size_t kMinRunaway = 3;
/// Weights larger than kLeapTo that were kLeap times smaller when last looked at: an update did that, not a
/// batch.
constexpr double kLeap = 256, kLeapTo = 1000;
/// The updates of this many steps are searched for one that made a layer leap.
constexpr std::size_t kLastUpdates = 16;
/// A series that begins at zero and grows evenly may grow by this much in the later half of its steps: one
/// bit, and its scatter.
constexpr double kEvenBits = 1.25;
/// An update that made weights this many times larger, and at least this large, ruined them.
constexpr double kRuin = 8, kRuinTo = 1;
/// A learning rate this many times larger than any before it was not intended.
constexpr double kRateJump = 1000;
constexpr std::size_t kLastRates = 2;
/// No optimizer is used with such a rate: 1 is usual for some, 30 the largest known (SGD of language models).
constexpr double kAbsurdRate = 100;
/// After this many updates with it a rate was one that the weights bore.
constexpr std::ptrdiff_t kBorne = 8;

/// True for columns of "scalars" that should not grow; learning rate, scale, counters and times may.
bool should_stay(const std::string& column) {
  return column == "loss" || column.find("norm") != std::string::npos ||
         column.find("amax") != std::string::npos;
}

/// Tables of one column per layer, named as in the probe's history.
bool is_layer_table(const std::string& name) {
  return name == "grad_norm" || name == "grad_amax" || name == "weight_norm" || name == "weight_amax";
}

/// Tables that hold new values only where weights were measured.
bool is_of_weights(const std::string& name) {
  return name.starts_with("weight_");
}

double threshold_bits(const std::string& table, const std::string& column) {
  return table == "weight_norm" || column == "loss" || column.find("weight_norm") != std::string::npos ? 0.5
                                                                                                       : 1.0;
}

/// A series that was looked at.
struct RisingSeries {
  std::optional<Growth> growth;  ///< where it rises enough to be reported
  double chance = 1;             ///< of rising this much
};

/// The last `window` rows of `all`.
RisingSeries growth_in(const std::vector<double>& all, std::size_t window, double threshold, bool sparse) {
  Growth g;
  g.series.assign(all.end() - static_cast<std::ptrdiff_t>(std::min(window, all.size())), all.end());
  const Trend trend = log2_trend(g.series);
  const bool enough = trend.points >= kMinPoints
                          ? trend.rising >= kRisingShare
                          : sparse && trend.points >= kMinRisingPoints && trend.rising == 1;
  g.bits_per_step = trend.bits_per_step;
  g.bits = g.bits_per_step * static_cast<double>(g.series.size() - (g.series.empty() ? 0 : 1));
  if (!enough || g.bits < threshold) return {std::nullopt, trend.chance};
  for (double x : g.series)
    if (std::isfinite(x) && x > 0) {
      if (g.first == 0) g.first = x;
      g.last = x;
    }
  return {std::move(g), trend.chance};
}

/// The finite values at the end of `all`, if the series runs away.
std::optional<Growth> runaway(const std::vector<double>& all) {
  std::size_t end = all.size();
  while (end > 0 && !std::isfinite(all[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && std::isfinite(all[begin - 1]) && all[begin - 1] > 0 &&
         (begin == end || all[begin] > kRunaway * all[begin - 1]))
    --begin;
  if (end - begin < kMinRunaway) return std::nullopt;
  Growth g;
  g.series.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                  all.begin() + static_cast<std::ptrdiff_t>(end));
  g.first = g.series.front(), g.last = g.series.back();
  g.bits = std::log2(g.last) - std::log2(g.first);
  g.bits_per_step = g.bits / static_cast<double>(g.series.size() - 1);
  return g;
}

/// The last two values above zero of a series of weights, if they leap.
std::optional<Growth> leap(const std::vector<double>& all) {
  const auto usable = [](double x) { return std::isfinite(x) && x > 0; };
  const auto last = std::find_if(all.rbegin(), all.rend(), usable);
  if (last == all.rend()) return std::nullopt;
  const auto before = std::find_if(std::next(last), all.rend(), usable);
  if (before == all.rend() || *last < kLeapTo || *last < kLeap * *before) return std::nullopt;
  Growth g;
  g.series.assign(std::prev(before.base()), last.base());
  g.first = *before, g.last = *last;
  g.bits = std::log2(g.last) - std::log2(g.first);
  g.bits_per_step = g.bits / static_cast<double>(g.series.size() - 1);
  return g;
}

/// The update that made a layer leap, shown by its ratio to the weights before it: those before the first
/// step are in no row. `norms`: the layer's weight_norm.
std::optional<Growth> leap_of_update(const SnapshotDoc& doc, const std::string& layer,
                                     const std::vector<double>& norms, const std::vector<double>& measured) {
  const std::vector<double> ratios = column_named(doc, "update_ratio", layer, measured),
                            largest = column_named(doc, "weight_amax", layer, measured);
  const std::size_t rows = std::min({norms.size(), ratios.size(), largest.size()});
  for (std::size_t r = rows; r-- > 0 && rows - r <= kLastUpdates;) {
    if (!(ratios[r] > kLeap && largest[r] > kLeapTo) || !std::isfinite(norms[r]) || !std::isfinite(ratios[r]))
      continue;
    // The update is nearly all of the weights after it.
    Growth g;
    g.first = norms[r] / ratios[r], g.last = norms[r];
    g.series = {g.first, g.last};
    g.bits = g.bits_per_step = std::log2(ratios[r]);
    return g;
  }
  return std::nullopt;
}

/// The window of the column in which it grew most.
RisingSeries growth_of(const SnapshotDoc& doc, const SeriesTable& table, std::size_t column,
                       const std::vector<double>& measured) {
  const std::vector<double> all = column_of(table, column, measured);
  if (measured.empty())
    if (auto g = runaway(all)) return {std::move(g), 0};
  if (is_of_weights(table.name))
    if (auto g = leap(all)) return {std::move(g), 0};
  if (table.name == "weight_norm")
    if (auto g = leap_of_update(doc, table.columns[column], all, measured)) return {std::move(g), 0};
  const double threshold = threshold_bits(table.name, table.columns[column]);
  // Too few points in the window although the history has more: uses the rest, too.
  const bool sparse =
      !measured.empty() &&
      std::count_if(all.end() - static_cast<std::ptrdiff_t>(std::min(kWindows[0], all.size())), all.end(),
                    [](double x) { return std::isfinite(x); }) < kMinPoints;
  if (sparse) return growth_in(all, all.size(), threshold, true);
  RisingSeries best;
  for (std::size_t window : kWindows) {
    RisingSeries one = growth_in(all, window, threshold, false);
    const double chance = std::min(best.chance, one.chance);
    if (one.growth && (!best.growth || one.growth->bits > best.growth->bits)) best = std::move(one);
    best.chance = chance;
  }
  best.chance = std::min(1.0, best.chance * static_cast<double>(std::size(kWindows)));
  return best;
}

/// Whether it is a factor of a LoRA adapter, of PEFT or ours.
bool of_adapter(const std::string& column) {
  return column.find("lora_A") != std::string::npos || column.find("lora_B") != std::string::npos;
}

/// Whether the later half of the series, oldest first, grew by more than one that begins at zero and grows
/// evenly: such a series doubles.
bool more_than_evenly(const std::vector<double>& series) {
  const auto usable = [](double x) { return std::isfinite(x) && x > 0; };
  const auto middle =
      std::find_if(series.begin() + static_cast<std::ptrdiff_t>(series.size() / 2), series.end(), usable);
  const auto last = std::find_if(series.rbegin(), series.rend(), usable);
  return middle != series.end() && std::log2(*last / *middle) > kEvenBits;
}

}  // namespace

std::vector<Growth> find_growth(const SnapshotDoc& doc, const LayerFilter& is_of_interest) {
  std::vector<RisingSeries> looked_at;
  const std::vector<double> measured = column_named(doc, "scalars", "measured");
  for (const SeriesTable& table : doc.history) {
    const bool scalars = table.name == "scalars";
    if (!scalars && !is_layer_table(table.name)) continue;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      if (scalars && !should_stay(table.columns[column])) continue;
      if (!scalars && is_of_interest && !is_of_interest(table.columns[column])) continue;
      RisingSeries one =
          growth_of(doc, table, column, is_of_weights(table.name) ? measured : std::vector<double>{});
      if (one.growth && of_adapter(table.columns[column]) && !more_than_evenly(one.growth->series))
        one.growth.reset();
      if (one.growth)
        one.growth->what = scalars ? table.columns[column] : table.name + " of " + table.columns[column];
      looked_at.push_back(std::move(one));
    }
  }
  std::vector<double> chances;
  chances.reserve(looked_at.size());
  for (const RisingSeries& one : looked_at) chances.push_back(one.chance);
  const double counts = largest_that_counts(std::move(chances), kChanceShare);
  std::vector<Growth> found;
  for (RisingSeries& one : looked_at)
    if (one.growth && one.chance <= counts) found.push_back(std::move(*one.growth));
  std::stable_sort(found.begin(), found.end(),
                   [](const Growth& a, const Growth& b) { return a.bits > b.bits; });
  return found;
}

std::string words(const Growth& g) {
  return g.what + " grew from " + number_text(g.first) + " to " + number_text(g.last) + " over the last " +
         std::to_string(g.series.size()) + " steps";
}

std::string weights_grew(const SnapshotDoc& doc) {
  const std::vector<Growth> growth = find_growth(doc);
  const auto found =
      std::find_if(growth.begin(), growth.end(), [](const Growth& g) { return is_of_weights(g.what); });
  return found == growth.end() ? "" : words(*found);
}

std::optional<LossJump> find_loss_jump(const SnapshotDoc& doc) {
  std::vector<double> losses = column_named(doc, "scalars", "loss"),
                      steps = column_named(doc, "scalars", "step");
  while (!steps.empty() && steps.back() >= static_cast<double>(doc.step)) steps.pop_back();
  losses.resize(std::min(losses.size(), steps.size()));
  const std::size_t skipped = losses.size() - std::min(losses.size(), kWindows[0]);
  losses.erase(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(skipped));
  const auto at = first_jump(losses);
  if (!at) return std::nullopt;
  return LossJump{static_cast<std::int64_t>(steps[skipped + *at]), losses[*at - 1], losses[*at]};
}

std::vector<Leap> find_leaps(const SnapshotDoc& doc, const LayerFilter& is_of_interest) {
  const std::vector<double> measured = column_named(doc, "scalars", "measured"),
                            steps = column_named(doc, "scalars", "step");
  std::vector<Leap> first;  // of one step
  const auto add = [&](const std::string& layer, std::size_t row, double before, double after) {
    const auto step = static_cast<std::int64_t>(steps[row]);
    if (!std::isfinite(before) || before <= 0 || !std::isfinite(after) || step >= doc.step) return;
    if (!first.empty() && step < first.front().step) first.clear();
    const bool known =
        std::any_of(first.begin(), first.end(), [&](const Leap& l) { return l.layer == layer; });
    if (first.empty() || (step == first.front().step && !known))
      first.push_back(Leap{layer, step, before, after});
  };
  for (const SeriesTable& table : doc.history) {
    if (table.name != "weight_norm" && table.name != "weight_amax") continue;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const std::string& layer = table.columns[column];
      if (of_adapter(layer) || (is_of_interest && !is_of_interest(layer))) continue;
      const std::vector<double> all = column_of(table, column, measured),
                                largest = column_named(doc, "weight_amax", layer, measured),
                                ratios = column_named(doc, "update_ratio", layer, measured);
      const std::size_t rows = std::min({all.size(), largest.size(), ratios.size(), steps.size()});
      for (std::size_t r = rows - std::min(rows, kLastUpdates); r < rows; ++r) {
        if (!(largest[r] >= kRuinTo)) continue;
        if (ratios[r] >= kRuin) add(layer, r, all[r] / ratios[r], all[r]);
        if (r > 0 && all[r - 1] > 0 && all[r] >= kRuin * all[r - 1]) add(layer, r, all[r - 1], all[r]);
      }
    }
  }
  return first;
}

std::optional<Leap> find_leap(const SnapshotDoc& doc, const LayerFilter& is_of_interest) {
  const std::vector<Leap> all = find_leaps(doc, is_of_interest);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

std::optional<RateJump> last_rate(const SnapshotDoc& doc) {
  const std::vector<double> rates = column_named(doc, "scalars", "lr"),
                            steps = column_named(doc, "scalars", "step");
  if (steps.size() != rates.size()) return std::nullopt;
  for (std::size_t r = rates.size(); r-- > 0;)
    if (steps[r] < static_cast<double>(doc.step) && rates[r] > 0)
      return RateJump{.step = static_cast<std::int64_t>(steps[r]), .rate = rates[r]};
  return std::nullopt;
}

std::optional<RateJump> find_rate_jump(const SnapshotDoc& doc) {
  const std::vector<double> rates = column_named(doc, "scalars", "lr"),
                            steps = column_named(doc, "scalars", "step");
  if (rates.size() <= kLastRates || steps.size() != rates.size()) return std::nullopt;
  const auto last = rates.end() - static_cast<std::ptrdiff_t>(kLastRates);
  RateJump jump;
  for (auto rate = rates.begin(); rate != rates.end(); ++rate) {
    if (rate >= last && jump.before > 0 && *rate > kRateJump * jump.before) {
      jump.rate = *rate;
      jump.step = static_cast<std::int64_t>(steps[static_cast<std::size_t>(rate - rates.begin())]);
      return jump;
    }
    jump.before = std::max(jump.before, *rate);
  }
  return std::nullopt;
}

std::optional<RateJump> absurd_rate(const SnapshotDoc& doc, std::int64_t step) {
  const std::vector<double> rates = column_named(doc, "scalars", "lr"),
                            steps = column_named(doc, "scalars", "step");
  if (steps.size() != rates.size()) return std::nullopt;
  const auto at = std::find(steps.begin(), steps.end(), static_cast<double>(step));
  if (at == steps.end()) return std::nullopt;
  const auto here = rates.begin() + (at - steps.begin());
  RateJump jump{.step = step, .rate = *here};
  if (!std::isfinite(jump.rate)) return std::nullopt;
  for (auto rate = rates.begin(); rate != here; ++rate)
    if (*rate > jump.before) jump.before = *rate;
  const auto alike = std::count_if(rates.begin(), here, [&](double rate) { return rate >= jump.rate / 2; });
  const bool leapt = jump.before > 0 && jump.rate > kRateJump * jump.before;
  return leapt || (jump.rate >= kAbsurdRate && alike < kBorne) ? std::optional(jump) : std::nullopt;
}

}  // namespace nanquest
