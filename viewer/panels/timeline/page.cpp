#include "viewer/model/numbers.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/registry.h"
#include "viewer/panels/series_lines.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kGlance = 40;  // events of a lane

PageTable table_of(TimelineEvent::Lane lane, const std::vector<TimelineEvent>& events, std::size_t most) {
  PageTable table{PageTable::Kind::plain, lane_title(lane), {{"Event"}}, {}};
  std::size_t count = 0;
  for (const TimelineEvent& e : events) {
    if (e.lane != lane || ++count > most) continue;
    table.rows.push_back({{"step " + exact_number(e.step) + ": " + e.what}});
  }
  if (count > most)
    table.rows.push_back({{"and " + grouped(count - most) + " more: --csv timeline holds them all"}});
  if (count == 0) table.rows.push_back({{"none"}});
  return table;
}

}  // namespace

PanelPage page_of_timeline(Session& session, Extent extent) {
  const History& history = session.history();
  PanelPage page;
  page.headline =
      !history.empty()
          ? "Steps " + exact_number(history.steps().front()) + " to " + exact_number(history.steps().back())
      : session.series_error().empty() ? "No series on record for this run"
                                       : "No series on record for this run: " + session.series_error();
  std::vector<SeriesLine> lines;
  for (const TimelineCurve& curve : timeline_curves(history)) lines.push_back({curve.name, curve.values});
  if (!lines.empty()) page.tables.push_back(series_table(history, "series", lines));
  const std::vector<TimelineEvent> events = timeline_events(session);
  for (int i = 0; i < kLanes; ++i)
    page.tables.push_back(table_of(static_cast<TimelineEvent::Lane>(i), events,
                                   extent == Extent::glance ? kGlance : kWholeRows));
  return page;
}

}  // namespace nanquest::viewer
