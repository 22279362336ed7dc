#include "viewer/model/numbers.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/lines.h"
#include "viewer/panels/series_lines.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kMostEvents = 40;  // of a lane; more are for --csv

void put_lane(std::string& out, TimelineEvent::Lane lane, const std::vector<TimelineEvent>& events) {
  std::size_t count = 0;
  for (const TimelineEvent& e : events) {
    if (e.lane != lane || ++count > kMostEvents) continue;
    put(out, "  step {}: {}\n", exact_number(e.step), e.what);
  }
  if (count > kMostEvents)
    put(out, "  and {} more: --csv timeline holds them all\n", grouped(count - kMostEvents));
}

}  // namespace

std::string timeline_text(Session& session) {
  const History& history = session.history();
  std::string out;
  if (history.empty())
    put(out, "No series on record for this run{}{}\n", session.series_error().empty() ? "" : ": ",
        session.series_error());
  else
    put(out, "Steps {} to {}\n", exact_number(history.steps().front()), exact_number(history.steps().back()));
  std::vector<SeriesLine> lines;
  for (const TimelineCurve& curve : timeline_curves(history)) lines.push_back({curve.name, curve.values});
  if (!lines.empty()) out += series_table(history, "series", lines);
  const std::vector<TimelineEvent> events = timeline_events(session);
  for (int i = 0; i < kLanes; ++i) {
    const auto lane = static_cast<TimelineEvent::Lane>(i);
    put(out, "{}\n", lane_title(lane));
    const std::size_t before = out.size();
    put_lane(out, lane, events);
    if (out.size() == before) out += "  none\n";
  }
  return out;
}

}  // namespace nanquest::viewer
