#include "replay/spike/data_trials.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "replay/lab/ddmin.h"

namespace nanquest {
namespace {

using Samples = std::vector<std::int64_t>;

constexpr std::int64_t kMostAlone = 128;  ///< samples that are run one by one
constexpr int kMostRuns = 48;             ///< of a search for the smallest set
constexpr double kAsFarOut = 0.75;        ///< of the least named sample's distance: named, too

std::string named(const Samples& samples) {
  if (samples.size() == 1) return "sample " + std::to_string(samples[0]);
  std::string text = std::to_string(samples.size()) + " samples (";
  constexpr std::size_t kNamed = 4;
  for (std::size_t i = 0; i < samples.size() && i < kNamed; ++i)
    text += (i ? ", " : "") + std::to_string(samples[i]);
  return text + (samples.size() > kNamed ? ", …)" : ")");
}

class Search {
 public:
  Search(const StepBatch& batch, const std::function<Figures(const RunOptions&)>& measure,
         const std::function<bool()>& has_time, SpikeTrials& trials)
      : batch_(batch), measure_(measure), has_time_(has_time), trials_(trials) {}

  /// The smallest set of samples without which the step is in its range; empty if no half of them is one.
  Samples smallest() {
    order_by_distance();
    for (std::size_t count = 1; count <= half(); count *= 2) {
      const Samples first(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count));
      if (!back_without(first)) continue;
      int runs = 0;
      return count == 1 ? first
                        : ddmin<std::int64_t>(
                              first, [&](const Samples& s) { return back_without(s); }, kMostRuns, &runs);
    }
    return {};
  }

  /// With those that are as far out by themselves.
  Samples with_their_like(Samples samples) const {
    if (alone_.empty()) return samples;
    double least = alone_[static_cast<std::size_t>(samples.front())];
    for (const std::int64_t s : samples) least = std::min(least, alone_[static_cast<std::size_t>(s)]);
    for (const std::int64_t s : order_)
      if (least > 1 && alone_[static_cast<std::size_t>(s)] >= kAsFarOut * least &&
          std::find(samples.begin(), samples.end(), s) == samples.end())
        samples.push_back(s);
    std::sort(samples.begin(), samples.end());
    return samples;
  }

  /// As many others, those first that are farthest out by themselves.
  Samples others(const Samples& samples) const {
    Samples left;
    for (const std::int64_t s : order_)
      if (left.size() < samples.size() && std::find(samples.begin(), samples.end(), s) == samples.end())
        left.push_back(s);
    return left;
  }

  std::size_t half() const { return static_cast<std::size_t>(batch_.samples()) / 2; }

  Figures without(const Samples& samples) const { return measure_(batch_.before(samples)); }

 private:
  bool back_without(const Samples& samples) const {
    return has_time_() && trials_.standing(without(samples)) == Standing::in_range;
  }

  void order_by_distance() {
    order_.resize(static_cast<std::size_t>(batch_.samples()));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    if (batch_.samples() > kMostAlone) return;
    for (const std::int64_t s : order_) {
      if (!has_time_()) return alone_.clear();
      alone_.push_back(trials_.distance(measure_(batch_.alone(s))));
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
      return alone_[static_cast<std::size_t>(a)] > alone_[static_cast<std::size_t>(b)];
    });
  }

  const StepBatch& batch_;
  const std::function<Figures(const RunOptions&)>& measure_;
  const std::function<bool()>& has_time_;
  SpikeTrials& trials_;
  Samples order_;
  std::vector<double> alone_;  ///< how far out each sample is by itself; empty if that was not tried
};

}  // namespace

DataResult try_data(const StepBatch& batch, const std::function<Figures(const RunOptions&)>& measure,
                    const std::function<bool()>& has_time, SpikeTrials& trials) {
  using enum DataResult::Verdict;
  DataResult result;
  const std::string step = "step " + std::to_string(batch.step_before());
  const auto all = batch.has_before() ? batch.all_before() : std::nullopt;
  if (!all) {
    result.not_tested.emplace_back("the step on another batch: the file holds none that fits it");
    return result;
  }
  result.before = measure(*all);
  const Standing before = trials.add("the batch of " + step, ChangeKind::data, result.before);
  if (before != Standing::in_range) {
    result.verdict = before == Standing::unknown ? unknown : other_batch_too;
    return result;
  }
  result.verdict = whole_batch;
  result.of = batch.samples();
  if (batch.samples() < 2) {
    result.not_tested.emplace_back("which samples: they can't be exchanged one by one");
    return result;
  }
  Search search(batch, measure, has_time, trials);
  const Samples smallest = search.smallest();
  if (!has_time()) result.not_tested.emplace_back("the rest of the search for samples: no time was left");
  const Samples found = smallest.empty() ? smallest : search.with_their_like(smallest);
  if (found.empty() || found.size() > search.half()) return result;
  result.without = search.without(found);
  const Samples others = search.others(found);
  result.control = search.without(others);
  const std::string as_before = " as " + step + " had " + (found.size() == 1 ? "it" : "them");
  const Standing without = trials.add(named(found) + as_before, ChangeKind::data, result.without);
  const Standing control =
      trials.add(named(others) + as_before + " instead", ChangeKind::placebo, result.control);
  if (without == Standing::in_range && control == Standing::out_of_range) {
    result.verdict = DataResult::Verdict::samples;
    result.samples = found;
  } else {
    result.not_tested.emplace_back("which samples: exchanging others changes the step as well");
  }
  return result;
}

}  // namespace nanquest
