#include "viewer/model/rehearsed.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "probe/snapshot/atomic_file.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

std::string name_of(const RehearsedRun& run) {
  switch (run.kind) {
    case RehearsedKind::unchanged:
      return "unchanged";
    case RehearsedKind::placebo:
      return "control: " + run.change;
    case RehearsedKind::change:
      break;
  }
  return run.change;
}

std::string result_of(const RehearsedRun& run) {
  if (!run.not_tried.empty()) return "not tried: " + run.not_tried;
  std::string text = run.failed_step      ? "bad at step " + std::to_string(*run.failed_step)
                     : run.losses.empty() ? "no good step"
                                          : "good to step " + std::to_string(run.end() - 1);
  if (run.kind == RehearsedKind::change) text += run.cures ? ": cures it" : ": no cure";
  return run.remark.empty() ? text : text + " (" + run.remark + ")";
}

History history_of(const RehearsedRun& run) {
  if (run.losses.empty()) return {};
  SeriesTable table{"scalars", {"step", "loss"}, {}};
  table.values.reserve(2 * run.losses.size());
  for (std::size_t i = 0; i < run.losses.size(); ++i) {
    table.values.push_back(static_cast<double>(run.first_step) + static_cast<double>(i));
    table.values.push_back(run.losses[i]);
  }
  return History({table});
}

}  // namespace

std::vector<RehearsedCurve> rehearsed_curves(const Rehearsal& rehearsal) {
  std::vector<RehearsedCurve> curves;
  for (const RehearsedRun& run : rehearsal.runs)
    curves.push_back({run.kind, name_of(run), result_of(run), run.cures, history_of(run)});
  return curves;
}

std::vector<RehearsedCurve> read_rehearsed(const std::string& snapshot, std::int64_t step, std::int32_t rank,
                                           std::string& error) {
  error.clear();
  const std::string path = rehearsal_path(snapshot);
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) return {};
  const Result<std::string> text = read_whole_file(path);
  const Result<Rehearsal> rehearsal = text ? rehearsal_from_json(*text) : Result<Rehearsal>(text.error());
  if (!rehearsal) error = path + ": " + rehearsal.error().message;
  if (!rehearsal || rehearsal->step != step || rehearsal->rank != rank) return {};
  return rehearsed_curves(*rehearsal);
}

PageTable rehearsed_table(const std::vector<RehearsedCurve>& curves) {
  PageTable table{PageTable::Kind::rehearsed,
                  "Rehearsed, losses",
                  {{"run"}, {"first", true}, {"last", true}, {"largest", true}, {"result"}},
                  {}};
  for (const RehearsedCurve& curve : curves) {
    const Pyramid* losses = curve.losses();
    const Extremes all = losses == nullptr ? Extremes() : losses->query(0, losses->size());
    const auto at = [&](std::size_t row) { return losses ? short_number((*losses)[row]) : "-"; };
    table.rows.push_back({{curve.name, at(0), at(losses ? losses->size() - 1 : 0),
                           all.has_finite() ? short_number(all.max) : "-", curve.result},
                          curve.cures ? Sign::finite : Sign::none});
  }
  return table;
}

}  // namespace nanquest::viewer
