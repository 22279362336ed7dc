// A rehearsal as a table for people.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "replay/verdict/rehearsal.h"

namespace nanquest {
namespace {

std::string number_or_dash(double value) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(value) < 1e5 ? "%.4f" : "%.3e", value);
  return std::isnan(value) ? "–" : text;
}

std::string step_or_dash(const std::optional<std::int64_t>& step) {
  return step ? std::to_string(*step) : "–";
}

/// "3.3110 to 3.4021", one number if both are equal.
std::string range(double least, double most) {
  return number_or_dash(least) == number_or_dash(most)
             ? number_or_dash(least)
             : number_or_dash(least) + " to " + number_or_dash(most);
}

/// Padding to a column: a dash is three bytes wide and one column.
std::string in_column(const std::string& text, std::size_t width, bool left = false) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  const std::string fill(columns < width ? width - columns : 0, ' ');
  return left ? text + fill : fill + text;
}

std::string row(const std::string& name, const std::string& bad, const std::string& past,
                const std::string& before, const std::string& end, const std::string& remark,
                std::size_t width) {
  std::string line = in_column(name, width, true) + in_column(bad, 12) + in_column(past, 12) +
                     in_column(before, 24) + in_column(end, 13) + (remark.empty() ? "" : "  " + remark);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

/// Placebos in one row: minimum and maximum of each column.
std::string placebo_row(const Rehearsal& r, std::size_t width) {
  double least = std::nan(""), most = least;
  std::optional<std::int64_t> first, last;
  std::int64_t count = 0, nothing = 0;
  bool all_bad = true;
  for (const RehearsedRun& run : r.runs) {
    if (run.kind != RehearsedKind::placebo) continue;
    nothing += run.remark.empty() ? 0 : 1;
    if (!run.remark.empty()) continue;
    ++count;
    least = std::fmin(least, run.mean);
    most = std::fmax(most, run.mean);
    all_bad = all_bad && run.failed_step.has_value();
    if (!run.failed_step) continue;
    first = std::min(first.value_or(*run.failed_step), *run.failed_step);
    last = std::max(last.value_or(*run.failed_step), *run.failed_step);
  }
  if (count + nothing == 0) return "";
  std::string bad =
      first == last ? step_or_dash(first) : std::to_string(*first) + " to " + std::to_string(*last);
  if (!all_bad) bad = first ? bad + ", –" : "–";
  return row(std::to_string(count) + (count == 1 ? " placebo" : " placebos"), bad, "–", range(least, most),
             "–", nothing > 0 ? std::to_string(nothing) + " more changed nothing" : "", width);
}

}  // namespace

std::string rehearsal_text(const Rehearsal& r) {
  std::size_t width = 14;
  for (const RehearsedRun& run : r.runs)
    if (run.kind == RehearsedKind::change) width = std::max(width, run.change.size() + 2);
  std::string text =
      "rehearsed     step " + std::to_string(r.step) + (r.began.empty() ? "" : ", from " + r.began) + "\n";
  if (!r.program.empty()) text += "program       " + r.program + "\n";
  text += "as recorded   ";
  text += !r.as_recorded   ? "no losses on record to compare with"
          : *r.as_recorded ? "yes: the losses of the unchanged run, bit for bit"
                           : "no: the losses of the unchanged run are others";
  if (r.again)
    text +=
        "\nbatches       from step " + std::to_string(*r.again) + " on those of the steps before, once more";
  text += "\n\n" + row("run", "bad at step", "steps past", "loss before", "loss at end", "", width);
  bool placebos = false;
  for (const RehearsedRun& run : r.runs) {
    if (run.kind == RehearsedKind::placebo) {
      if (!std::exchange(placebos, true)) text += placebo_row(r, width);
      continue;
    }
    const bool past =
        !r.failed_steps.empty() && run.kind == RehearsedKind::change && run.end() - 1 > r.failed_steps.back();
    text +=
        row(run.kind == RehearsedKind::unchanged ? "unchanged" : run.change, step_or_dash(run.failed_step),
            past ? std::to_string(run.end() - 1 - r.failed_steps.back()) : "–", number_or_dash(run.mean),
            number_or_dash(run.end_mean), run.remark, width);
  }
  text += "\nroot          ";
  text += r.root ? r.root->cause + ": " + r.root->explanation : "not claimed: " + r.not_tried;
  return text + "\n";
}

}  // namespace nanquest
