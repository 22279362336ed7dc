#include <algorithm>
#include <optional>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/model/smoothing.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/registry.h"
#include "viewer/panels/series_lines.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kGlanceEvents = 40;  // events of a lane
constexpr std::size_t kPlaces = 12;        // with their headroom

PageTable table_of(TimelineEvent::Lane lane, const std::vector<TimelineEvent>& events, std::size_t most) {
  PageTable table{PageTable::Kind::plain, lane_title(lane), {{"Event"}}, {}};
  std::size_t count = 0;
  for (const TimelineEvent& e : events) {
    if (e.lane != lane || ++count > most) continue;
    table.rows.push_back({{"step " + exact_number(e.step) + ": " + e.what}});
    if (!e.place.empty()) table.rows.back().place = Link::to_place(e.place);
  }
  if (count > most)
    table.rows.push_back({{"and " + grouped(count - most) + " more: --csv timeline holds them all"}});
  if (count == 0) table.rows.push_back({{"none"}});
  return table;
}

std::string share_text(double share) {
  return share >= 0 ? short_number(100 * share) + " %" : "-";
}

/// Each place at its least headroom.
PageTable places_of(const Headroom& headroom, std::size_t most) {
  PageTable table{PageTable::Kind::plain,
                  "headroom",
                  {{"place"},
                   {"least bits", true},
                   {"at step", true},
                   {"largest |x|", true},
                   {"zero", true},
                   {"subnormal", true}},
                  {}};
  for (std::size_t i = 0; i < std::min(most, headroom.places().size()); ++i) {
    const HeadroomPlace& p = headroom.places()[i];
    table.rows.push_back({{p.name, short_number(p.bits), exact_number(p.step), short_number(p.amax),
                           share_text(p.zero), share_text(p.subnormal)},
                          Sign::none,
                          Link::to_place(p.name)});
  }
  if (const std::size_t count = headroom.places().size(); count > most)
    table.title += ", the nearest " + grouped(most) + " of " + counted(count, "place");
  return table;
}

/// The series of a run beside the open one.
void add_run(PanelPage& page, const Session& session, std::size_t run,
             const std::vector<TimelineCurve>& curves) {
  const Session& other = *session.others()[run - 1];
  const std::string& name = session.comparison()->runs[run];
  const auto table = [&](const std::string& title, const History& history, bool smooth) {
    std::vector<SeriesLine> lines;
    for (const TimelineCurve& curve : curves)
      for (const RunCurve& beside : curve.beside)
        if (beside.run == run && beside.history == &history && (!smooth || beside.smooth))
          lines.push_back({curve.history == &session.history() ? curve.name : curve.title,
                           smooth ? beside.smooth.get() : beside.values,
                           {},
                           beside.given_from});
    if (!lines.empty()) page.tables.push_back(series_table(history, title, lines));
  };
  table("series of " + name, other.history(), false);
  table("series of " + name + " smoothed", other.history(), true);
  table("at watched steps of " + name, other.headroom().history(), false);
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
  if (const std::string lost = session.lost_series(); !lost.empty()) page.facts.push_back({"", lost});
  const std::vector<TimelineCurve> curves = timeline_curves(session);
  if (const double weight = session.selection().smoothing; weight > 0)
    page.facts.push_back({"Smoothing", smoothing_text(weight)});
  const auto scalars = [&](bool smooth) {
    std::vector<SeriesLine> lines;
    for (const TimelineCurve& curve : curves)
      if (curve.history == &history && (!smooth || curve.smooth))
        lines.push_back({curve.name, smooth ? curve.smooth.get() : curve.values, {}, curve.given_from});
    return lines;
  };
  if (const auto lines = scalars(false); !lines.empty())
    page.tables.push_back(series_table(history, "series", lines));
  if (const auto lines = scalars(true); !lines.empty())
    page.tables.push_back(series_table(history, "series smoothed", lines));
  for (std::size_t run = 1; run <= session.others().size(); ++run) add_run(page, session, run, curves);
  std::optional<PageTable> headroom;
  for (const TimelineCurve& curve : curves)
    if (curve.history != &history)
      headroom = series_table(*curve.history, "at watched steps", {{curve.title, curve.values}});
  if (!session.rehearsed().empty()) page.tables.push_back(rehearsed_table(session.rehearsed()));
  if (headroom) page.tables.push_back(*std::move(headroom));
  const std::vector<TimelineEvent> events = timeline_events(session);
  const std::size_t most = extent == Extent::glance ? kGlanceEvents : kWholeRows;
  for (int i = 0; i < shown_lanes(events); ++i)
    page.tables.push_back(table_of(static_cast<TimelineEvent::Lane>(i), events, most));
  if (!session.headroom().empty())
    page.tables.push_back(places_of(session.headroom(), extent == Extent::glance ? kPlaces : kWholeRows));
  return page;
}

}  // namespace nanquest::viewer
