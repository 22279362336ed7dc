#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/panels.h"
#include "viewer/model/verdict_page.h"

namespace nanquest::viewer {
namespace {

/// A field, quoted where RFC 4180 asks for it.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

template <class... Fields>
void row(std::ostream& out, const Fields&... fields) {
  const char* separator = "";
  ((out << separator << field(fields), separator = ","), ...);
  out << '\n';
}

/// Line breaks as "; ": one record a line, for tools that read lines.
std::string one_line(std::string text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at))
    text.replace(at, 1, "; ");
  return text;
}

std::string num(std::uint64_t value) {
  return std::to_string(value);
}

std::string verdict_csv(const Session& session) {
  const VerdictPage page = verdict_page(session);
  std::ostringstream out;
  row(out, std::string("kind"), std::string("name"), std::string("value"), std::string("limit"));
  const std::string none;
  row(out, std::string("headline"), none, page.headline, none);
  row(out, std::string("cause"), none, std::string(page.cause ? word(*page.cause) : ""), none);
  row(out, std::string("confidence"), none, exact_number(page.confidence), none);
  for (const Fact& f : page.facts) row(out, std::string("fact"), f.label, one_line(f.text), none);
  if (page.fix)
    row(out, std::string(page.fix_verified() ? "fix:verified" : "fix:not_verified"), page.fix->change,
        page.fix->advice, none);
  for (const Claim& c : page.claims) {
    const std::string cause(word(c.cause));
    if (c.facts_for.empty() && c.facts_against.empty()) row(out, std::string("claim"), cause, none, none);
    for (const std::string& fact : c.facts_for)
      row(out, std::string("claim:for"), cause, one_line(fact), none);
    for (const std::string& fact : c.facts_against)
      row(out, std::string("claim:against"), cause, one_line(fact), none);
  }
  for (const Evidence& e : page.evidence) row(out, std::string("evidence"), e.name, e.value, e.limit);
  for (const Counterfactual& t : page.trials)
    row(out, "trial:" + std::string(word(t.kind)), t.change, std::string(spoken(t.result)), none);
  for (const std::string& t : page.not_tested) row(out, std::string("not_tested"), none, t, none);
  return out.str();
}

/// One row a step: scalars, then the selected statistic of every layer.
std::string norms_csv(const Session& session) {
  const History& history = session.history();
  const Statistic s = session.selection().statistic;
  std::ostringstream out;
  out << "step";
  for (const std::string& name : history.scalar_names()) out << ',' << field(name);
  for (const std::string& layer : history.layers(s))
    out << ',' << field(std::string(statistic_table(s)) + ":" + layer);
  out << '\n';
  for (std::size_t r = 0; r < history.rows(); ++r) {
    out << exact_number(history.steps()[r]);
    for (const Pyramid& scalar : history.scalars()) out << ',' << exact_number(scalar[r]);
    for (std::size_t i = 0; i < history.layers(s).size(); ++i)
      out << ',' << exact_number(history.series(s, i)[r]);
    out << '\n';
  }
  return out.str();
}

std::string trace_csv(const Session& session) {
  std::ostringstream out;
  out << "op,mark,phase,micro_batch,name,module,node,read_formats,read_amax,read_headroom_bits,read_nan,read_"
         "pos_inf,"
         "read_neg_inf,write_format,write_shape,write_amax,write_headroom_bits,write_nan,write_pos_inf,write_"
         "neg_inf,source\n";
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return out.str();
  for (std::size_t i = 0; i < incident->trace.size(); ++i) {
    const TraceLine l = incident->trace.line(OpId{i});
    const auto amax = [](const ValueRange& r) {
      return r.has_amax && !r.none_finite() ? exact_number(r.amax) : std::string();
    };
    const auto room = [](const ValueRange& r) {
      return r.has_headroom ? exact_number(r.headroom) : std::string();
    };
    row(out, num(i), std::string(mark_words(incident->trace.mark(OpId{i}))), std::string(phase_name(l.phase)),
        std::to_string(incident->doc.ops[i].micro_batch), l.name, l.module, l.node, l.read_formats,
        amax(l.read), room(l.read), num(l.read.nan), num(l.read.pos_inf), num(l.read.neg_inf), l.write_format,
        l.write_shape, amax(l.written), room(l.written), num(l.written.nan), num(l.written.pos_inf),
        num(l.written.neg_inf), incident->trace.source(OpId{i}));
  }
  return out.str();
}

Result<std::string> tensor_csv(Session& session) {
  const TensorDetail* detail = session.tensor_detail();
  if (detail == nullptr)
    return Error{session.tensor_error().empty() ? ErrorCode::usage : ErrorCode::bad_file,
                 session.tensor_error().empty() ? "no stored tensor is selected" : session.tensor_error(),
                 ""};
  std::ostringstream out;
  out << "tensor,exponent,count\n";
  const ScanResult& s = detail->scan;
  const auto line = [&](const std::string& bin, std::uint64_t count) {
    row(out, detail->tensor.path, bin, num(count));
  };
  line("zero", s.zero);
  for (int i = 0; i < kHistogramBins; ++i)
    if (const std::uint64_t n = detail->histogram[static_cast<std::size_t>(i)])
      line(std::to_string(kHistogramMinExponent + i), n);
  line("nan", s.nan);
  line("+inf", s.pos_inf);
  line("-inf", s.neg_inf);
  return out.str();
}

std::string runs_csv(const Session& session) {
  std::ostringstream out;
  out << "step,rank,attempt,gate,cause,confidence,summary,snapshot,verdict\n";
  for (const IncidentEntry& e : session.incidents())
    row(out, std::to_string(e.files.step), std::to_string(e.files.rank), std::to_string(e.files.attempt),
        e.gate, e.cause, exact_number(e.confidence), e.summary, e.files.snapshot, e.files.verdict);
  return out.str();
}

}  // namespace

Result<std::string> panel_csv(Session& session, Panel panel) {
  switch (panel) {
    case Panel::verdict:
      return verdict_csv(session);
    case Panel::norms:
      return norms_csv(session);
    case Panel::trace:
      return trace_csv(session);
    case Panel::tensor:
      return tensor_csv(session);
    case Panel::runs:
      return runs_csv(session);
    case Panel::all:
      break;
  }
  return Error{ErrorCode::usage, "CSV holds one panel at a time",
               "choose verdict, norms, trace, tensor or runs"};
}

}  // namespace nanquest::viewer
