/// Desk: how a user left a run when they last looked at it, and their notes on it; of a folder of runs, which
/// of them were shown together. Stored in a folder of the user's own, one file per run, never in the run:
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
  std::vector<std::string> together;  ///< of a folder: names of the runs that were chosen, in that order
  bool unreadable = false;            ///< the stored file could not be read: it is not overwritten

  bool operator==(const Desk&) const = default;
};

/// $XDG_STATE_HOME/nanquest, else ~/.local/state/nanquest; "" if there is no place for it. Makes nothing.
std::string state_folder();
/// The file in which the desk of a run (or snapshot) is stored, by its absolute path; "" for no folder. Reads
/// the file system.
std::string desk_path(const std::string& folder, const std::string& run);

/// An empty one if nothing is stored. `bad_file` if it can't be read; reads the file system.
Result<Desk> read_desk(const std::string& folder, const std::string& run);
/// Stores it, completely or not at all; does nothing for no folder. `usage` if the folder is inside the run,
/// `io` if it can't be written.
Status write_desk(const std::string& folder, const Session& session, const Desk& desk);

/// Whether something is shown that has a desk: a run, a snapshot or a folder of runs.
bool has_desk(const Session& session);
/// Identifies the selected incident; none if there is none.
IncidentName shown_incident(const Session& session);
/// Its row in the list; -1 if it is not there.
int row_of(const Session& session, const IncidentName& incident);
/// Selects what was selected then. False, and nothing changes, if the run now opens with another incident:
/// that one is news. Reads if another incident is to be opened.
bool take_selection(Session& session, const Desk& desk);

}  // namespace nanquest::viewer
