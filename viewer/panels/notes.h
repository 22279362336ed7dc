/// The dialog of notes: a field for a new one, and below it the existing ones, each with a link to its place.
#pragma once

#include "viewer/panels/finder.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// What a user of this panel is looking at: the selected op, layer, sample or tensor, otherwise the step.
/// `kNone` is its number if there is no step either.
Link looked_at(const Session& session, Panel panel);

class NotesDialog {
 public:
  /// `panel`: where the person was who wants to write.
  void open(Panel panel);
  bool is_open() const { return finder_.is_open(); }
  void draw(UiState& state);

 private:
  Finder finder_{"Notes", "A new note on what is selected, or words of one", "Type a note, then Enter"};
  Panel panel_ = Panel{};
};

}  // namespace nanquest::viewer
