#include "viewer/panels/notes.h"

#include <string>
#include <utility>
#include <vector>

#include "viewer/model/words.h"

namespace nanquest::viewer {
namespace {

void keep_notes(UiState& state, std::vector<Note> notes, const char* message) {
  state.session.set_notes(std::move(notes));
  state.unkept = true;
  state.message = state.options.folders.state.empty()
                      ? "There is no folder to keep notes in: they go with the window"
                      : message;
}

void add_note(UiState& state, const Note& note) {
  std::vector<Note> notes = state.session.notes();
  notes.push_back(note);
  keep_notes(state, std::move(notes), "Noted");
}

void remove_note(UiState& state, const Note& note) {
  std::vector<Note> notes = state.session.notes();
  std::erase(notes, note);
  keep_notes(state, std::move(notes), "The note is removed");
}

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

}  // namespace

Link looked_at(const Session& session, Panel panel) {
  const Selection& s = session.selection();
  const bool ops = panel == Panel::trace || panel == Panel::verdict;
  if (ops && s.op != kNone) return Link::to_op(s.op);
  if (panel == Panel::norms && !s.layer.empty()) return Link::to_layer(s.layer, s.statistic);
  if (panel == Panel::batch && s.sample >= 0 && session.incident() != nullptr)
    return Link::to_sample(s.sample, session.incident()->sample_tensor());
  if (panel == Panel::tensor && !s.tensor.empty()) return Link::to_tensor(s.tensor);
  return Link::to_step(s.step < 0 ? kNone : static_cast<std::int64_t>(s.step));
}

void NotesDialog::open(Panel panel) {
  panel_ = panel;
  finder_.open();
}

void NotesDialog::draw(UiState& state) {
  if (!finder_.is_open()) return;
  const std::string text = trimmed(finder_.text());
  const Words words(text);
  std::vector<Finder::Entry> entries;
  if (!text.empty()) {
    const Note note{text, shown_incident(state.session), looked_at(state.session, panel_)};
    entries.push_back({"Note: " + text, note.where(), [&state, note] { add_note(state, note); }});
  }
  for (const bool removes : {false, true})
    for (const Note& note : state.session.notes())
      if (words.in(note.text + ' ' + note.where())) {
        if (removes)
          entries.push_back(
              {"Remove: " + note.text, note.where(), [&state, note] { remove_note(state, note); }});
        else
          entries.push_back({note.text, note.where(), [&state, note] { state.go(note); }});
      }
  finder_.draw(entries);
}

}  // namespace nanquest::viewer
