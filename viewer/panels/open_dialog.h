/// The dialog that opens another run: a field for its path, and the recent ones below it.
#pragma once

#include <memory>
#include <vector>

#include "viewer/model/settings.h"
#include "viewer/panels/finder.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

class OpenDialog {
 public:
  void open();
  bool is_open() const { return finder_.is_open(); }
  void draw(UiState& state);

 private:
  struct Listed;
  void list(UiState& state);

  Finder finder_{"Open", "Path of a run or a snapshot", "Type or paste a path; none was opened before"};
  std::shared_ptr<Listed> listed_;  ///< null: nobody was asked yet
};

}  // namespace nanquest::viewer
