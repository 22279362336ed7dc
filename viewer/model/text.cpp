#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "probe/base/wrap.h"
#include "viewer/model/numbers.h"
#include "viewer/model/panels.h"
#include "viewer/model/text_table.h"
#include "viewer/model/verdict_page.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kLabel = 12;

template <class... Values>
void put(std::string& out, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Values>(values)...);
}

/// A labelled paragraph, wrapped at kWidth; line breaks of the text are kept.
void paragraph(std::string& out, std::string label, const std::string& text) {
  if (text.empty()) return;
  for (const std::string& line : wrapped(text, kWidth - kLabel, /*keep_breaks=*/true)) {
    put(out, "{:<{}}{}\n", label, kLabel, line);
    label.clear();
  }
}

std::string verdict_text(const Session& session) {
  const VerdictPage page = verdict_page(session);
  std::string out = page.headline + "\n";
  if (page.cause) put(out, "{}: {}\n", word(*page.cause), meaning(*page.cause));
  if (!page.facts.empty()) out += '\n';
  for (const Fact& fact : page.facts) paragraph(out, fact.label, fact.text);
  if (!page.command.empty()) paragraph(out, "", "not replayed yet: run " + page.command);
  for (const PageTable& table : verdict_tables(page)) {
    std::vector<TextColumn> columns;
    for (const std::string& title : table.columns) columns.push_back({title});
    std::vector<std::vector<std::string>> rows;
    for (const PageTable::Row& row : table.rows) rows.push_back(row.cells);
    out += '\n' + table.title + '\n';
    if (columns.size() > 1)
      out += text_table(columns, rows, "  ");
    else
      for (const std::vector<std::string>& row : rows) put(out, "  {}\n", row.front());
  }
  return out;
}

std::string norms_text(const Session& session) {
  const History& history = session.history();
  const Statistic s = session.selection().statistic;
  if (!history.has(s))
    return fmt::format("No history of {}{}{}\n", statistic_title(s),
                       session.series_error().empty() ? "" : ": ", session.series_error());
  std::string out = fmt::format("{}, steps {} to {}\n", statistic_title(s),
                                exact_number(history.steps().front()), exact_number(history.steps().back()));
  for (const GateEvent& e : history.events())
    put(out, "  step {}: {}\n", exact_number(e.step), gate_words(e.gate));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < history.layers(s).size(); ++i) {
    const Pyramid& series = history.series(s, i);
    const Extremes all = series.query(0, series.size());
    double last = std::nan("");
    for (std::size_t r = series.size(); r-- > 0 && std::isnan(last);)
      if (std::isfinite(series[r])) last = series[r];
    std::string bad = bad_text(all.nan, all.pos_inf, all.neg_inf);
    for (std::size_t r = 0; r < series.size(); ++r)
      if (!std::isfinite(series[r])) {
        bad += " (first at step " + exact_number(history.steps()[r]) + ")";
        break;
      }
    rows.push_back({history.layers(s)[i], short_number(series[0]), short_number(last),
                    all.has_finite() ? short_number(all.min) : "-",
                    all.has_finite() ? short_number(all.max) : "-", bad});
  }
  return out + text_table({{"layer"},
                           {"first", true},
                           {"last finite", true},
                           {"smallest", true},
                           {"largest", true},
                           {"not finite"}},
                          rows);
}

std::string range_text(const ValueRange& range) {
  std::string text = amax_text(range);
  if (range.has_headroom && std::isfinite(range.headroom)) put(text, " ({:+.1f} bits)", range.headroom);
  return text;
}

/// Ops around the selected one; the whole trace is what --csv is for.
std::string trace_text(const Session& session) {
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return verdict_page(session).headline + "\n";
  const TraceView& trace = incident->trace;
  const std::int32_t chosen = session.selection().op;
  const std::size_t centre = chosen == kNone ? 0 : static_cast<std::size_t>(chosen);
  const std::size_t first = centre > 20 ? centre - 20 : 0, last = std::min(trace.size(), centre + 21);
  std::string out = counted(trace.size(), "op") + " on record";
  if (last - first < trace.size()) put(out, ", {} to {} shown", first, last - 1);
  out += '\n';
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = first; i < last; ++i) {
    const TraceLine l = trace.line(OpId{i});
    rows.push_back({std::to_string(i), static_cast<std::int32_t>(i) == chosen ? ">" : "",
                    mark_words(trace.mark(OpId{i})), std::string(phase_name(l.phase)), l.name, l.module,
                    l.read_formats + "->" + l.write_format, range_text(l.read), range_text(l.written),
                    bad_text(l.written.nan, l.written.pos_inf, l.written.neg_inf)});
  }
  out += text_table({{"op", true},
                     {""},
                     {"mark"},
                     {"phase"},
                     {"name"},
                     {"module"},
                     {"formats"},
                     {"read amax (room)"},
                     {"written amax (room)"},
                     {"not finite"}},
                    rows);
  if (const std::string source = chosen == kNone ? "" : trace.source(OpId{chosen}); !source.empty())
    put(out, "op {} comes from {}\n", chosen, source);
  return out;
}

std::string tensor_text(Session& session) {
  const TensorDetail* detail = session.tensor_detail();
  if (detail == nullptr)
    return session.tensor_error().empty() ? "No stored tensor is selected\n" : session.tensor_error() + "\n";
  const ScanResult& s = detail->scan;
  std::string out = fmt::format("{} ({}), {} {}, {}\n", detail->tensor.name, detail->tensor.group,
                                dtype_name(detail->tensor.dtype), shape_text(detail->tensor.shape),
                                bytes_text(detail->tensor.bytes));
  if (detail->partial) put(out, "only the first {} elements were read\n", grouped(s.count));
  put(out, "{:<15}{}\n{:<15}{}\n", "largest |x|", largest_text(s), "smallest |x|>0", smallest_text(s));
  put(out, "{:<15}{}\n{:<15}{}\n", "zeros", grouped(s.zero), "subnormal", grouped(s.subnormal));
  put(out, "{:<15}{}\n", "not finite", not_finite_text(*detail));
  for (const FormatFit& fit : detail->fits)
    put(out, "{:<10} overflow {:<10} flushed to zero {:<10} subnormal {}\n", info(fit.format).name,
        percent_text(fit.overflow, s.count), percent_text(fit.flushed, s.count),
        percent_text(fit.subnormal, s.count));
  for (std::size_t i = 0; i < detail->histogram.size(); ++i)
    if (detail->histogram[i])
      put(out, "2^{:<5}{:>14}\n", kHistogramMinExponent + static_cast<int>(i), grouped(detail->histogram[i]));
  return out;
}

std::string runs_text(const Session& session) {
  std::string out = session.path() + "\n";
  if (!session.manifest_error().empty()) out += session.manifest_error() + "\n";
  paragraph(out, "status", session.status());
  if (const auto& m = session.manifest()) {
    paragraph(out, "command", m->command);
    paragraph(out, "created", m->created);
    if (m->world_size > 1) paragraph(out, "ranks", std::to_string(m->world_size));
  }
  if (!session.series_error().empty()) out += session.series_error() + "\n";
  const std::size_t incidents = session.incidents().size();
  out += (incidents == 0 ? "no incidents" : counted(incidents, "incident")) + "\n";
  for (const IncidentEntry& e : session.incidents()) {
    put(out, "  step {}, rank {}", e.files.step, e.files.rank);
    if (e.files.attempt > 1) put(out, ", attempt {}", e.files.attempt);
    put(out, ": {}{}{}\n", e.standing(), e.summary.empty() ? "" : ". ", e.summary);
    if (e.snapshot != Snapshot::never_written)
      put(out, "    {}\n", e.error.empty() ? e.files.snapshot : e.error);
  }
  return out;
}

}  // namespace

std::string_view panel_name(Panel panel) {
  constexpr std::string_view names[] = {"verdict", "norms", "trace", "tensor", "runs", "all"};
  return names[static_cast<int>(panel)];
}

std::optional<Panel> panel_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Panel::all); ++i)
    if (panel_name(static_cast<Panel>(i)) == name) return static_cast<Panel>(i);
  return std::nullopt;
}

std::string panel_text(Session& session, Panel panel) {
  switch (panel) {
    case Panel::verdict:
      return verdict_text(session);
    case Panel::norms:
      return norms_text(session);
    case Panel::trace:
      return trace_text(session);
    case Panel::tensor:
      return tensor_text(session);
    case Panel::runs:
      return runs_text(session);
    case Panel::all:
      break;
  }
  std::string all;
  for (const Panel p : {Panel::runs, Panel::verdict, Panel::norms, Panel::trace, Panel::tensor}) {
    if (!all.empty()) all += '\n';
    all.append("== ").append(panel_name(p)).append(" ==\n").append(panel_text(session, p));
  }
  return all;
}

}  // namespace nanquest::viewer
