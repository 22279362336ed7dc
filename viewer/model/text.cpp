#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/page.h"
#include "viewer/model/panels.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kLabel = 12;

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// A labelled paragraph, wrapped at kWidth; line breaks of the text are kept.
void paragraph(std::ostream& out, std::string label, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string row;
    for (std::string word; words >> word;) {
      if (!row.empty() && kLabel + row.size() + 1 + word.size() > kWidth) {
        out << padded(label, kLabel) << row << '\n';
        label.clear();
        row.clear();
      }
      row += (row.empty() ? "" : " ") + word;
    }
    out << padded(label, kLabel) << row << '\n';
    label.clear();
  }
}

std::string verdict_text(const Session& session) {
  const VerdictPage page = verdict_page(session);
  std::ostringstream out;
  out << page.headline << '\n';
  if (!page.cause.empty())
    out << page.cause << (page.cause_in_words.empty() ? "" : ": " + page.cause_in_words) << '\n';
  if (!page.facts.empty()) out << '\n';
  for (const Fact& fact : page.facts) paragraph(out, fact.label, fact.text);
  if (!page.command.empty()) paragraph(out, "", "not replayed yet: run " + page.command);
  if (!page.evidence.empty()) out << "\nEvidence\n";
  for (const VerdictEvidence& e : page.evidence)
    out << "  " << padded(e.name, 40) << "  " << e.value
        << (e.limit.empty() ? "" : "  (limit " + e.limit + ")") << '\n';
  if (!page.trials.empty()) out << "\nTried on this step\n";
  for (const Trial& t : page.trials)
    out << "  " << padded(t.result, 18) << (t.placebo ? "placebo: " : "") << t.change << '\n';
  if (!page.not_tested.empty()) out << "\nNot tested\n";
  for (const std::string& t : page.not_tested) out << "  " << t << '\n';
  return out.str();
}

std::string norms_text(const Session& session) {
  const History& history = session.history();
  std::ostringstream out;
  const Statistic s = session.selection().statistic;
  if (!history.has(s)) {
    out << "No history of " << statistic_title(s)
        << (session.series_error().empty() ? "" : ": " + session.series_error()) << '\n';
    return out.str();
  }
  out << statistic_title(s) << ", steps " << exact_number(history.steps().front()) << " to "
      << exact_number(history.steps().back()) << '\n';
  for (const GateEvent& e : history.events())
    out << "  step " << exact_number(e.step) << ": " << gate_words(e.gate) << '\n';
  out << padded("layer", 36) << right("first", 12) << right("last finite", 12) << right("smallest", 12)
      << right("largest", 12) << "  not finite\n";
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
    out << padded(history.layers(s)[i], 36) << right(short_number(series[0]), 12)
        << right(short_number(last), 12) << right(all.has_finite() ? short_number(all.min) : "-", 12)
        << right(all.has_finite() ? short_number(all.max) : "-", 12) << "  " << bad << '\n';
  }
  return out.str();
}

std::string range_text(const ValueRange& range) {
  if (!range.known) return "-";
  std::string text = short_number(range.amax);
  if (range.has_headroom && std::isfinite(range.headroom)) {
    char bits[32];
    std::snprintf(bits, sizeof bits, " (%+.1f bits)", range.headroom);
    text += bits;
  }
  return text;
}

/// Ops around the selected one; the whole trace is what --csv is for.
std::string trace_text(const Session& session) {
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return verdict_page(session).headline + "\n";
  const TraceView& trace = incident->trace;
  std::ostringstream out;
  out << counted(trace.size(), "op") << " on record";
  const std::int32_t chosen = session.selection().op;
  const std::size_t centre = chosen == kNone ? 0 : static_cast<std::size_t>(chosen);
  const std::size_t first = centre > 20 ? centre - 20 : 0, last = std::min(trace.size(), centre + 21);
  if (last - first < trace.size()) out << ", " << first << " to " << last - 1 << " shown";
  out << "\n"
      << right("op", 6) << "  " << padded("mark", 11) << padded("phase", 10) << padded("name", 34)
      << padded("module", 28) << padded("formats", 16) << padded("read amax (room)", 24)
      << padded("written amax (room)", 24) << "not finite\n";
  for (std::size_t i = first; i < last; ++i) {
    const TraceLine l = trace.line(OpId{i});
    const std::string bad = bad_text(l.written.nan, l.written.pos_inf, l.written.neg_inf);
    out << right(std::to_string(i), 6) << (static_cast<std::int32_t>(i) == chosen ? "> " : "  ")
        << padded(mark_words(trace.mark(OpId{i})), 11) << padded(std::string(phase_name(l.phase)), 10)
        << padded(l.name, 34) << padded(l.module, 28) << padded(l.read_formats + "->" + l.write_format, 16)
        << padded(range_text(l.read), 24) << padded(range_text(l.written), 24) << bad << '\n';
  }
  return out.str();
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%",
                whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

std::string tensor_text(Session& session) {
  const TensorDetail* detail = session.tensor_detail();
  if (detail == nullptr)
    return session.tensor_error().empty() ? "No stored tensor is selected\n" : session.tensor_error() + "\n";
  const ScanResult& s = detail->scan;
  std::ostringstream out;
  out << detail->tensor.name << " (" << detail->tensor.group << "), " << dtype_name(detail->tensor.dtype)
      << " " << shape_text(detail->tensor.shape) << ", " << bytes_text(detail->tensor.bytes) << '\n';
  if (detail->partial) out << "only the first " << grouped(s.count) << " elements were read\n";
  out << "largest |x|    " << short_number(s.amax) << "\nsmallest |x|>0 " << short_number(s.amin_nonzero)
      << "\nzeros          " << grouped(s.zero) << "\nsubnormal      " << grouped(s.subnormal)
      << "\nnot finite     " << (s.non_finite() ? bad_text(s.nan, s.pos_inf, s.neg_inf) : "none") << '\n';
  for (const FormatFit& fit : detail->fits)
    out << padded(std::string(info(fit.format).name), 10) << " overflow "
        << padded(percent(fit.overflow, s.count), 10) << " flushed to zero "
        << padded(percent(fit.flushed, s.count), 10) << " subnormal " << percent(fit.subnormal, s.count)
        << '\n';
  for (int i = 0; i < kHistogramBins; ++i)
    if (detail->histogram[static_cast<std::size_t>(i)])
      out << "2^" << padded(std::to_string(kHistogramMinExponent + i), 5)
          << right(grouped(detail->histogram[static_cast<std::size_t>(i)]), 14) << '\n';
  return out.str();
}

std::string runs_text(const Session& session) {
  std::ostringstream out;
  out << session.path() << '\n';
  if (!session.manifest_error().empty()) out << session.manifest_error() << '\n';
  if (const auto& m = session.manifest()) {
    paragraph(out, "status", m->status + (m->outcome.empty() ? "" : ": " + m->outcome));
    paragraph(out, "command", m->command);
    paragraph(out, "created", m->created);
    if (m->world_size > 1) paragraph(out, "ranks", std::to_string(m->world_size));
  }
  if (!session.series_error().empty()) out << session.series_error() << '\n';
  out << (session.incidents().empty() ? "no incidents" : counted(session.incidents().size(), "incident"))
      << '\n';
  for (const IncidentEntry& e : session.incidents()) {
    out << "  step " << e.files.step << ", rank " << e.files.rank;
    if (e.files.attempt > 1) out << ", attempt " << e.files.attempt;
    out << ": "
        << (!e.error.empty()  ? "can't be read"
            : e.cause.empty() ? "not replayed yet"
                              : e.cause)
        << (e.summary.empty() ? "" : ". " + e.summary) << '\n'
        << "    " << (e.error.empty() ? e.files.snapshot : e.error) << '\n';
  }
  return out.str();
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
