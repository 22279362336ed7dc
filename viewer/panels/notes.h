/// The dialog of notes: a field for a new one, and those that there are below it, each leading to its place.
#pragma once

#include "viewer/panels/finder.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// What a person looks at who has this panel before them: the op, layer, sample or tensor that is selected,
/// else the step. `kNone` is its number where there is no step either.
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
