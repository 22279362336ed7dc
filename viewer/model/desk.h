/// Desk: how a person left a run when they last looked at it, and their notes on it. Kept in a folder of the
/// user's own, a file a run, never in the run:
///
///     ~/.local/state/nanquest/runs/story-1f3a….json
///
///     Result<Desk> desk = read_desk(state_folder(), "runs/story");
///     desk->notes.push_back({"the sample is cut off", {131}, Link::to_op(55)});
///     Status kept = write_desk(state_folder(), "runs/story", *desk);
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/base/result.h"
#include "viewer/model/link.h"
#include "viewer/model/note.h"
#include "viewer/model/selection.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

struct Desk {
  std::string layout, theme;                       ///< by name; "" for as it is
  std::vector<std::string> front;                  ///< names of the panels that could be seen
  std::optional<std::pair<double, double>> steps;  ///< that plots showed; nothing: all of them
  IncidentName first;                              ///< the incident that the run opened with then
  IncidentName shown;                              ///< the one that was looked at
  std::optional<Selection> selection;              ///< its `incident` is of `shown`, not a row
  std::vector<Note> notes;
  bool unreadable = false;  ///< what is kept could not be read: it is not written over

  bool operator==(const Desk&) const = default;
};

/// $XDG_STATE_HOME/nanquest, else ~/.local/state/nanquest; "" if there is no place for it. Makes nothing.
std::string state_folder();
/// Where the desk of a run (or snapshot) is kept, by its whole path; "" for no folder. Asks the file system.
std::string desk_path(const std::string& folder, const std::string& run);

/// An empty one if nothing is kept. `bad_file` if what is kept can't be read; asks the file system.
Result<Desk> read_desk(const std::string& folder, const std::string& run);
/// Keeps it, complete or not at all; nothing for no folder. `usage` if the folder lies in the run, `io` if it
/// can't be written.
Status write_desk(const std::string& folder, const Session& session, const Desk& desk);

/// Of the selected incident; none without.
IncidentName shown_incident(const Session& session);
/// Its row in the list; -1 if it is not there.
int row_of(const Session& session, const IncidentName& incident);
/// Selects what was selected then. False, and nothing changes, where the run opens with another incident now:
/// that one is news. Reads where another incident is to be opened.
bool take_selection(Session& session, const Desk& desk);

}  // namespace nanquest::viewer
