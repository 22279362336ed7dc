#include "replay/diff/differ.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "replay/diff/comparison.h"
#include "replay/diff/formats.h"
#include "replay/diff/regions.h"

namespace nanquest::diff {
namespace {

bool was_given(const Finding& f) {
  return f.kind == Kind::batch || f.kind == Kind::state;
}

/// The first difference of what the steps do; null if there is none.
const Finding* first_of_step(const Report& report) {
  const auto found = std::find_if_not(report.findings.begin(), report.findings.end(), was_given);
  return found == report.findings.end() ? nullptr : &*found;
}

/// No number that the program passed explains it: formats or the order of sums may.
bool may_be_rounding(const Finding& f) {
  return f.kind == Kind::operations || f.kind == Kind::input || f.kind == Kind::format ||
         f.kind == Kind::value;
}

/// What a compiled region makes may differ inside it; all later differences follow from that.
void add_region(const Replayer& a, const Replayer& b, const Settings& settings, Report& report) {
  try {
    std::optional<Finding> inside = look_into_regions(a, b, settings);
    if (!inside) {
      inside = look_into_regions(b, a, settings);
      if (inside) std::swap(inside->a, inside->b);
    }
    if (!inside) return;
    report.notes.push_back(std::to_string(report.findings.size()) +
                           " later differences were found too, which may follow from the region's");
    report.findings = {*std::move(inside)};
  } catch (const std::exception& e) {
    report.notes.push_back("the operators of a compiled region can't be run here: " +
                           std::string(e.what()).substr(0, 120));
  }
}

/// Both steps again in fp64, where formats and the order of sums make no difference.
void add_fp64(const Replayer& a, const Replayer& b, Settings settings, Report& report) {
  InFp64& result = report.in_fp64.emplace();
  for (const Replayer* step : {&a, &b})
    if (result.why_not.empty()) result.why_not = not_in_fp64(*step);
  if (!result.why_not.empty()) return;
  const bool hidden = !first_of_step(report);
  if (!hidden) settings.most_repairs = 1;  // only whether there is a difference
  Report wide = compare_in(a, b, settings, Precision::fp64);
  const Finding* first = first_of_step(wide);
  result.alike = !first;
  if (!first) return;
  result.where = *first;
  // What no experiment explains may come from a kernel that does not compute in fp64.
  const bool all_shown = std::all_of(wide.findings.begin(), wide.findings.end(),
                                     [](const Finding& f) { return was_given(f) || f.shown; });
  if (!hidden || !all_shown || !wide.complete) return;
  result.hidden = true;
  report.findings = std::move(wide.findings);
  report.notes = std::move(wide.notes);
  report.complete = true;
  report.equal_pairs = wide.equal_pairs;
}

}  // namespace

Result<Report> compare_steps(const Replayer& a, const Replayer& b, const Settings& settings) {
  try {
    Report report = compare_in(a, b, settings, Precision::as_recorded);
    const Finding* first = first_of_step(report);
    if (first && report.same_program && may_be_rounding(*first) && first == report.findings.data()) {
      add_region(a, b, settings, report);
      first = first_of_step(report);
    }
    if (report.same_program && (first ? may_be_rounding(*first) : report.formats.has_value())) {
      if (settings.say) settings.say("comparing in fp64");
      add_fp64(a, b, settings, report);
    }
    return report;
  } catch (const std::exception& e) {
    return Error{ErrorCode::bad_file, std::string("the steps can't be compared: ") + e.what(),
                 "nanquest-replay verify FILE shows whether each can be run"};
  }
}

}  // namespace nanquest::diff
