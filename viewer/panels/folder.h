/// The runs of a folder as a table, before one of them is open: sorted, searched, opened by a click.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/panels/view.h"

namespace nanquest::viewer {

class FolderView {
 public:
  /// Draws the folder of the session, which must have one, into the current window. A click on a run opens
  /// it, and so does Enter in the search field if one run is left. Boxes choose runs to be opened together.
  void draw(UiState& state);
  /// Puts the keyboard into the search field in the next frame.
  void search() { focus_ = true; }
  /// The rows that were drawn last, of RunFolder::runs.
  const std::vector<std::size_t>& rows() const { return rows_; }
  /// Paths of the runs that were chosen, in that order.
  const std::vector<std::string>& chosen() const { return chosen_; }
  /// Their names below the folder, and the choice of runs by their names; names of runs that are gone are
  /// ignored.
  std::vector<std::string> chosen_names(const RunFolder& folder) const;
  void choose(const RunFolder& folder, const std::vector<std::string>& names);

 private:
  void refresh(const RunFolder& folder, std::uint64_t content);
  void draw_row(UiState& state, const RunLine& run);
  void draw_box(const RunLine& run);
  void draw_choice(UiState& state, const RunFolder& folder);

  char words_[128] = "";
  bool focus_ = false;
  RunColumn by_ = RunColumn::age;
  bool descending_ = false;
  std::vector<std::size_t> rows_;
  std::string rows_of_;  ///< what they were made of
  std::vector<std::string> chosen_;
  std::string opened_;  ///< path of the run that was opened from here last
};

}  // namespace nanquest::viewer
