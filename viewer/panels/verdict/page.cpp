#include "viewer/panels/verdict/page.h"

#include <algorithm>
#include <utility>

#include "viewer/panels/registry.h"
#include "viewer/panels/series_lines.h"

namespace nanquest::viewer {
namespace {

/// A row for each of `page.series`, in their order.
PageTable series_rows(const Session& session, const VerdictPage& page) {
  const History& history = session.history();
  std::vector<SeriesLine> lines;
  for (const LayerSeries& series : page.series) {
    const std::vector<std::string>& layers = history.layers(series.statistic);
    const auto layer = static_cast<std::size_t>(std::ranges::find(layers, series.layer) - layers.begin());
    lines.push_back(
        {series.layer + ", " + statistic_title(series.statistic), &history.series(series.statistic, layer)});
  }
  PageTable table = series_table(history, "layer", lines);
  table.kind = PageTable::Kind::series;
  table.title = "Series of the layers that it names";
  return table;
}

}  // namespace

std::vector<PageTable> tables_of(const Session& session, const VerdictPage& page) {
  std::vector<PageTable> out = verdict_tables(page);
  if (!page.series.empty()) out.push_back(series_rows(session, page));
  if (!session.rehearsed().empty()) out.push_back(rehearsed_table(session.rehearsed()));
  for (PageTable& table : place_tables(session)) out.push_back(std::move(table));
  return out;
}

PanelPage page_of_verdict(Session& session, Extent) {
  const VerdictPage page = verdict_page(session);
  PanelPage out{page.headline, page.cause, page.facts, tables_of(session, page)};
  if (!page.command.empty()) out.facts.push_back({"", "not replayed yet: run " + page.command});
  return out;
}

}  // namespace nanquest::viewer
