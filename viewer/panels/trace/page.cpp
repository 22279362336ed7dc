#include <algorithm>
#include <cmath>

#include "viewer/model/numbers.h"
#include "viewer/model/op_graph.h"
#include "viewer/model/step_map.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/lines.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kGlanceOps = 41;  // ops around the chosen one

std::string range_text(const ValueRange& range) {
  std::string text = amax_text(range);
  if (range.has_headroom && std::isfinite(range.headroom)) put(text, " ({:+.1f} bits)", range.headroom);
  return text;
}

PageTable::Row row_of(const OpenIncident& incident, OpId op, bool chosen) {
  const TraceLine l = incident.trace.line(op);
  PageTable::Row row = {{std::to_string(op.row()), chosen ? ">" : "", mark_words(incident.trace.mark(op)),
                         std::string(phase_name(l.phase)), l.name, l.module,
                         l.read_formats + "->" + l.write_format, range_text(l.read), range_text(l.written),
                         bad_text(l.written.nan, l.written.pos_inf, l.written.neg_inf)},
                        Sign::none,
                        Link::to_op(op.row())};
  if (const std::optional<Replayed>& again = incident.replayed) {
    const auto fp64 = again->fp64.at(op);
    row.cells.insert(row.cells.end(), {replayed_text(again->fp32.at(op)), replayed_text(fp64),
                                       off_text(again->recorded.at(op), fp64)});
  }
  return row;
}

/// "first divergence from fp64: op 352 aten::mul in transformer.h.2.mlp.act: finite in fp64 alone".
std::string divergence_text(const OpenIncident& incident) {
  if (!incident.replayed) return "";
  const OpId op = incident.replayed->first_divergence();
  if (!op) return "fp64 stays near the step as recorded at every op";
  const TraceLine l = incident.trace.line(op);
  return "first divergence from fp64: op " + std::to_string(op.row()) + " " + l.name +
         (l.module.empty() ? "" : " in " + l.module) + ": " +
         off_text(incident.replayed->recorded.at(op), incident.replayed->fp64.at(op));
}

/// What an op wrote, and before it what the ops wrote that made its inputs: as recorded, in fp32, in fp64,
/// and how far the first is from the last.
PageTable compared(const OpenIncident& incident, OpId op) {
  PageTable table{PageTable::Kind::plain,
                  "op " + std::to_string(op.row()) + " and its producers, recorded and replayed",
                  {{"max |x|"}, {"recorded", true}, {"in fp32", true}, {"in fp64", true}, {"off fp64"}},
                  {}};
  const Replayed& again = *incident.replayed;
  const auto add = [&](const std::string& what, OpId by) {
    const auto recorded = again.recorded.at(by), fp64 = again.fp64.at(by);
    if (!recorded && !fp64) return;
    table.rows.push_back({{what + ", op " + std::to_string(by.row()) + " " + incident.trace.line(by).name,
                           replayed_text(recorded), replayed_text(again.fp32.at(by)), replayed_text(fp64),
                           off_text(recorded, fp64)},
                          far_off(recorded, fp64) ? Sign::non_finite : Sign::none,
                          Link::to_op(by.row())});
  };
  for (const OpId producer : incident.trace.producers(op)) add("input", producer);
  add("output", op);
  return table;
}

/// "path to the loss from op 12: 13 aten::add, 14 aten::sum".
std::string path_text(const TraceView& trace, OpId op) {
  constexpr std::size_t kNamed = 12;
  const TraceView::Path path = trace.path_from(op);
  if (path.ops.size() < 2) return "";
  std::string text = std::string(path.to_loss ? "path to the loss" : "path to a gradient") + " from op " +
                     std::to_string(op.row()) + ":";
  for (std::size_t i = 1; i < path.ops.size() && i <= kNamed; ++i)
    text += (i == 1 ? " " : ", ") + std::to_string(path.ops[i].row()) + " " + trace.line(path.ops[i]).name;
  return path.ops.size() > kNamed + 1 ? text + ", …" : text;
}

}  // namespace

/// The ops around `op`, two levels of producers and consumers.
PageTable graph_table(const TraceView& trace, OpId op) {
  PageTable table{
      PageTable::Kind::plain,
      "Producers and consumers of op " + std::to_string(op.row()),
      {{"level", true}, {"op", true}, {"name"}, {"module"}, {"formats"}, {"max |x|", true}, {"not finite"}},
      {}};
  const OpGraph graph = op_graph(trace, op);
  for (const OpGraph::Node& node : graph.nodes) {
    const TraceLine l = trace.line(node.op);
    const std::string level = (node.level > 0 ? "+" : "") + std::to_string(node.level);
    table.rows.push_back(
        {{level, std::to_string(node.op.row()), l.name, l.module,
          node.cast.empty() ? l.read_formats + "->" + l.write_format : "cast " + node.cast,
          amax_text(l.written), bad_text(l.written.nan, l.written.pos_inf, l.written.neg_inf)},
         l.written.non_finite() > 0 ? Sign::non_finite : Sign::none,
         Link::to_op(node.op.row())});
  }
  std::string more;
  for (int level = -2; level <= 2; ++level)
    if (const std::size_t missing = graph.missing(level); missing > 0)
      put(more, "{}{} on level {}", more.empty() ? "; left out: " : ", ", grouped(missing), level);
  table.title += more;
  return table;
}

/// Ops around the selected one; the whole trace is available with --csv.
PanelPage page_of_trace(Session& session, Extent extent) {
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) return nothing_page(session);
  const TraceView& trace = incident->trace;
  const std::int32_t chosen = session.selection().op;
  const std::size_t most = std::min(trace.size(), extent == Extent::glance ? kGlanceOps : kWholeRows);
  const std::size_t centre = chosen == kNone ? 0 : static_cast<std::size_t>(chosen);
  const std::size_t last = std::min(trace.size(), std::max(most, centre + most / 2 + 1)), first = last - most;
  PanelPage page;
  page.headline = counted(trace.size(), "op") + " on record";
  if (last - first < trace.size()) put(page.headline, ", {} to {} shown", first, last - 1);
  if (const std::string source = chosen == kNone ? "" : trace.source(OpId{chosen}); !source.empty())
    page.facts.push_back({"", "op " + std::to_string(chosen) + " comes from " + source});
  if (const std::string path = chosen == kNone ? "" : path_text(trace, OpId{chosen}); !path.empty())
    page.facts.push_back({"", path});
  if (const std::string text = divergence_text(*incident); !text.empty()) page.facts.push_back({"", text});
  if (const std::string text = born_text(*incident, step_map(*incident)); !text.empty())
    page.facts.push_back({"", text});
  PageTable table;
  table.columns = {{"op", true},
                   {""},
                   {"mark"},
                   {"phase"},
                   {"name"},
                   {"module"},
                   {"formats"},
                   {"read max |x| (headroom)"},
                   {"written max |x| (headroom)"},
                   {"not finite"}};
  if (incident->replayed)
    table.columns.insert(table.columns.end(), {{"max |x| in fp32", true}, {"in fp64", true}, {"off fp64"}});
  for (std::size_t i = first; i < last; ++i)
    table.rows.push_back(row_of(*incident, OpId{i}, static_cast<std::int32_t>(i) == chosen));
  if (incident->replayed && chosen != kNone) page.tables.push_back(compared(*incident, OpId{chosen}));
  page.tables.push_back(std::move(table));
  if (chosen != kNone) page.tables.push_back(graph_table(trace, OpId{chosen}));
  return page;
}

}  // namespace nanquest::viewer
