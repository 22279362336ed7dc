// The rule: which change prevents a failure of a run, and what that says about its root.
#include "replay/verdict/rehearsal.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "replay/verdict/setting_change.h"

namespace nanquest {
namespace {

struct Price {
  std::string_view key, cause;
  int price;
};

/// Settings by what it costs to change them, in the words of Python programs and of nanquest-trainer.
constexpr std::array kPrices = std::to_array<Price>(
    {{"precision", "PRECISION", 0},     {"amp-dtype", "PRECISION", 0},  {"skip", "BAD_DATA", 2},
     {"weight-decay", "DIVERGENCE", 3}, {"momentum", "DIVERGENCE", 3},  {"beta1", "DIVERGENCE", 3},
     {"beta2", "DIVERGENCE", 3},        {"eps", "DIVERGENCE", 3},       {"adam-eps", "DIVERGENCE", 3},
     {"lr", "DIVERGENCE", 3},           {"warmup", "DIVERGENCE", 3},    {"warmup-ratio", "DIVERGENCE", 3},
     {"clip", "DIVERGENCE", 3},         {"grad-clip", "DIVERGENCE", 3}, {"module-clip", "DIVERGENCE", 3},
     {"zclip", "DIVERGENCE", 3},        {"spam", "DIVERGENCE", 3},      {"z-loss", "DIVERGENCE", 3},
     {"qk-clip", "DIVERGENCE", 3},      {"qk-norm", "DIVERGENCE", 3},   {"moments", "BAD_STATE", 4},
     {"undo", "BAD_STATE", 1}});
constexpr std::string_view kWider = "PRECISION";
constexpr Price kOther = {"", "UNKNOWN", 5};

/// The most expensive part of "lr=*0.5,clip=1".
Price price_of(const std::string& change) {
  Price dearest = {"", "UNKNOWN", -1};
  const Result<std::vector<SettingChange>> parts = parse_settings(change);
  if (!parts) return kOther;
  for (const SettingChange& part : *parts) {
    const auto found =
        std::find_if(kPrices.begin(), kPrices.end(), [&](const Price& p) { return p.key == part.key; });
    const Price price = found == kPrices.end() ? kOther : *found;
    if (price.price > dearest.price) dearest = price;
  }
  return dearest;
}

/// Mean of the known `losses`; NaN if there are none.
double mean_of(std::span<const double> losses) {
  double sum = 0, count = 0;
  for (const double loss : losses)
    if (!std::isnan(loss)) sum += loss, ++count;
  return count > 0 ? sum / count : std::nan("");
}

/// Losses of the steps [from, to); none if the run does not have all of them.
std::span<const double> between(const RehearsedRun& run, std::int64_t from, std::int64_t to) {
  if (from >= to || from < run.first_step || to > run.end()) return {};
  return std::span(run.losses)
      .subspan(static_cast<std::size_t>(from - run.first_step), static_cast<std::size_t>(to - from));
}

/// The uncertainty of a mean loss because batches differ.
double scatter(std::span<const double> losses) {
  double sum = 0, count = 0;
  for (std::size_t i = 1; i < losses.size(); ++i)
    if (const double step = losses[i] - losses[i - 1]; !std::isnan(step)) sum += step * step, ++count;
  return count > 0 ? std::sqrt(sum / count / 2) / std::sqrt(static_cast<double>(losses.size())) : 0;
}

/// Losses of two runs, bit for bit as far as both went, and both ended alike.
bool same(const RehearsedRun& a, const RehearsedRun& b) {
  const auto n = static_cast<std::ptrdiff_t>(std::min(a.losses.size(), b.losses.size()));
  return a.failed_step == b.failed_step && a.first_step == b.first_step &&
         std::equal(a.losses.begin(), a.losses.begin() + n, b.losses.begin(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

bool tried(const RehearsedRun& run) {
  return run.not_tried.empty();
}

/// What the changes are compared with.
struct Baseline {
  std::vector<const RehearsedRun*> runs;
  bool failed = false;                               ///< any of them
  std::int64_t earliest = 0, latest = 0;             ///< bad steps
  std::int64_t from = 0, to = 0;                     ///< common steps
  double most = std::nan(""), least = std::nan("");  ///< means over them
  double off = 0;                                    ///< uncertainty of a mean
};

/// Why no root can be named; "" if one can.
std::string doubt_of(const Rehearsal& r, const Baseline& baseline) {
  if (r.runs.empty() || r.runs.front().kind != RehearsedKind::unchanged) return "there is no unchanged run";
  const RehearsedRun& unchanged = r.runs.front();
  if (!tried(unchanged)) return "the unchanged run could not be made: " + unchanged.not_tried;
  const std::string recorded = "step " + std::to_string(r.step);
  if (!unchanged.failed_step)
    return "the unchanged run does not go bad at " + recorded + ": it is finite until step " +
           std::to_string(unchanged.end() - 1) + (unchanged.ended_itself ? ", where it ends by itself" : "");
  if (*unchanged.failed_step != r.step && *unchanged.failed_step != r.step + 1)
    return "the unchanged run goes bad at step " + std::to_string(*unchanged.failed_step) + ", not at " +
           recorded + " as recorded";
  for (const RehearsedRun* run : baseline.runs) {
    if (run->failed_step) continue;
    if (run->ended_itself && run->end() <= r.step)
      return "with " + run->change + " changed the run ends before " + recorded +
             (run->failure.empty() ? "" : ": " + run->failure);
    return "with " + run->change + " changed it does not go bad: the failure hangs on a last bit";
  }
  return "";
}

Baseline baseline_of(const Rehearsal& r) {
  Baseline b;
  for (const RehearsedRun& run : r.runs)
    if (tried(run) && run.kind != RehearsedKind::change &&
        (run.kind == RehearsedKind::unchanged || !same(run, r.runs.front())))
      b.runs.push_back(&run);
  std::int64_t first = 0;
  for (const RehearsedRun* run : b.runs) {
    first = std::max(first, run->first_step);
    if (!run->failed_step) continue;
    b.earliest = b.failed ? std::min(b.earliest, *run->failed_step) : *run->failed_step;
    b.latest = b.failed ? std::max(b.latest, *run->failed_step) : *run->failed_step;
    b.failed = true;
  }
  if (!b.failed) return b;
  b.to = b.earliest;
  b.from = std::max(first, b.to - kOutlive);
  for (const RehearsedRun* run : b.runs) {
    const double mean = mean_of(between(*run, b.from, b.to));
    b.most = std::fmax(b.most, mean);
    b.least = std::fmin(b.least, mean);
  }
  b.off = 2 * scatter(between(*b.runs.front(), b.from, b.to));
  return b;
}

/// Good steps after the latest failure that verify something: on batches that were not used before.
std::int64_t fresh_past(const Rehearsal& r, const RehearsedRun& run, const Baseline& b) {
  return std::min(run.end(), r.again.value_or(run.end())) - 1 - b.latest;
}

void judge_run(const Rehearsal& r, RehearsedRun& run, const Baseline& b, bool claims, bool nothing_changed) {
  const std::span<const double> losses = run.losses;
  const auto window = std::min<std::size_t>(losses.size(), kOutlive);
  const double first_mean = mean_of(losses.first(window));
  run.mean = mean_of(between(run, b.from, b.to));
  run.end_mean = mean_of(losses.last(window));
  run.outlives = claims && run.end() >= b.latest + kOutlive;
  // By the scatter that it has there itself: a run that explodes later scatters more and more.
  const std::span<const double> before =
      std::isnan(run.mean) ? losses.first(window) : between(run, b.from, b.to);
  // Nor may it end above its beginning: beside a jump of the loss everything scatters.
  const std::span<const double> begun = losses.first(window);
  run.learns = run.end_mean <= mean_of(before) + 2 * scatter(before) &&
               run.end_mean <= mean_of(begun) + 2 * scatter(begun);
  run.cures = false;
  run.remark = "";
  if (!tried(run)) {
    run.remark = "not tried: " + run.not_tried;
  } else if (nothing_changed) {
    run.remark = "changed nothing";
  } else if (run.kind == RehearsedKind::change && claims) {
    const bool low = b.from == b.to || run.mean <= b.most + b.off;
    run.cures = run.outlives && run.learns && low && run.doubt.empty();
    const bool verified = fresh_past(r, run, b) >= kVerified;
    run.remark = run.cures       ? verified ? "cures, verified for the run" : "cures, as far as it went"
                 : !run.outlives ? run.failed_step ? "goes bad too"
                                   : run.ended_itself && !run.failure.empty()
                                       ? run.failure
                                       : "did not go on for long enough"
                 : !run.learns   ? "stays finite, but its loss climbs"
                 : !low          ? "stays finite, but learns less"
                                 : run.doubt;
  }
  if (run.remark.empty() && run.kind == RehearsedKind::change && run.ended_itself) run.remark = run.failure;
  if (run.remark.empty() && run.kind == RehearsedKind::change && !(run.end_mean < first_mean))
    run.remark = "its loss at the end is not below that at the beginning";
}

std::string explain(const Rehearsal& r, const RehearsedRoot& root) {
  const auto count =
      static_cast<std::size_t>(std::count_if(r.runs.begin(), r.runs.end(), [&](const RehearsedRun& run) {
        return run.kind == RehearsedKind::placebo && tried(run) && !same(run, r.runs.front());
      }));
  const std::string placebos = count == 0
                                   ? std::string()
                                   : (count == 1 ? std::string(" and so does a placebo")
                                                 : " and so do " + std::to_string(count) + " placebos") +
                                         " by step " + std::to_string(r.failed_steps.back());
  const std::string bad =
      "unchanged the run goes bad at step " + std::to_string(*r.runs.front().failed_step) + placebos;
  if (root.change.empty()) return bad + "; nothing of what was tried cures it";
  const bool wider =
      root.cause != kWider && std::any_of(root.cured.begin(), root.cured.end(),
                                          [](const std::string& c) { return price_of(c).cause == kWider; });
  return bad + "; with " + root.change + " it goes on for " + std::to_string(root.steps) +
         " steps past that and learns" +
         (root.verified ? ""
          : r.again
              ? ", on the batches of the steps before once more (which is no proof for the run: rehearse it)"
              : " (too few to be sure of the run)") +
         (wider && !r.growth.empty() ? "; " + r.growth + ", which a wider format only outlasts" : "");
}

RehearsedRoot root_of(const Rehearsal& r, const Baseline& b) {
  RehearsedRoot root;
  Price cheapest = {"", "UNKNOWN", kOther.price + 1};
  const RehearsedRun* with = nullptr;
  // If values grow, and a setting that makes them grow less prevents the failure, a wider format only delays
  // it; growth alone says nothing.
  const bool slower = std::any_of(r.runs.begin(), r.runs.end(), [](const RehearsedRun& run) {
    return run.cures && price_of(run.change).cause == "DIVERGENCE";
  });
  for (const RehearsedRun& run : r.runs) {
    if (run.kind != RehearsedKind::change || !tried(run)) continue;
    root.tried.push_back(run.change);
    if (!run.cures) continue;
    root.cured.push_back(run.change);
    Price price = price_of(run.change);
    if (price.cause == kWider && !r.growth.empty() && slower) price.price = kOther.price;
    if (price.price >= cheapest.price) continue;
    cheapest = price;
    root.change = run.change;
    root.steps = run.end() - 1 - b.latest;
    with = &run;
  }
  root.cause = cheapest.cause;
  root.verified = with && fresh_past(r, *with, b) >= kVerified;
  root.explanation = explain(r, root);
  return root;
}

}  // namespace

void judge(Rehearsal& r) {
  const Baseline b = baseline_of(r);
  r.not_tried = doubt_of(r, b);
  r.failed_steps = {};
  r.loss = {};
  r.root = std::nullopt;
  if (b.failed) r.failed_steps = {b.earliest, b.latest};
  if (!std::isnan(b.most)) r.loss = {b.least, b.most};
  for (RehearsedRun& run : r.runs)
    judge_run(r, run, b, r.not_tried.empty(),
              run.kind != RehearsedKind::unchanged && same(run, r.runs.front()));
  const bool any = std::any_of(r.runs.begin(), r.runs.end(), [](const RehearsedRun& run) {
    return run.kind == RehearsedKind::change && tried(run);
  });
  if (r.not_tried.empty() && !any) {
    const auto why = std::find_if(r.runs.begin(), r.runs.end(), [](const RehearsedRun& run) {
      return run.kind == RehearsedKind::change && !tried(run);
    });
    r.not_tried = "no change was tried" + (why == r.runs.end() ? "" : ": " + why->not_tried);
  }
  if (r.not_tried.empty()) r.root = root_of(r, b);
}

std::string rehearsal_path(const std::string& snapshot) {
  return (snapshot.ends_with(".h5") ? snapshot.substr(0, snapshot.size() - 3) : snapshot) + ".rehearsal.json";
}

}  // namespace nanquest
