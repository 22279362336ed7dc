#include "viewer/model/opening.h"

#include <utility>

#include "viewer/model/settings.h"

namespace nanquest::viewer {

Result<Opening> open_as_left(const std::string& path, const OwnFolders& folders, Progress* progress) {
  Result<Session> session = Session::open(path, progress);
  if (!session) return session.error();
  Opening opening{std::move(session).value(), {}, false, ""};
  if (const Status noted = note_recent(folders.settings, path); !noted)
    opening.trouble = "it is not kept among the recent runs: " + noted.error().text();
  const IncidentName first = shown_incident(opening.session);
  Result<Desk> desk = read_desk(folders.state, path);
  if (desk) {
    opening.desk = std::move(desk).value();
    opening.session.report_to(progress);
    opening.resumed = take_selection(opening.session, opening.desk);
    opening.session.report_to(nullptr);
  } else {
    opening.trouble = desk.error().text();
    opening.desk.unreadable = true;
  }
  opening.session.set_notes(opening.desk.notes);
  opening.desk.first = first;
  return opening;
}

}  // namespace nanquest::viewer
