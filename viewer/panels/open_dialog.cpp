#include "viewer/panels/open_dialog.h"

#include <atomic>
#include <string>

#include "viewer/model/path_words.h"
#include "viewer/model/words.h"

namespace nanquest::viewer {

/// What the reading thread finds out.
struct OpenDialog::Listed {
  std::vector<RecentRun> runs;
  std::atomic<bool> known{false};
};

void OpenDialog::open() {
  finder_.open();
  listed_.reset();
}

/// Only the file systems know whether the recent runs are still there: they are checked on the thread that
/// reads. If another request has replaced this one, it is repeated.
void OpenDialog::list(UiState& state) {
  const bool busy = state.loader != nullptr && state.loader->busy();
  if (busy || (listed_ != nullptr && listed_->known)) return;
  listed_ = std::make_shared<Listed>();
  const auto ask = [listed = listed_, folder = state.options.folders.settings](Session&) {
    listed->runs = recent_runs(folder);
    listed->known = true;
    return true;  // it is to be drawn
  };
  state.read({"recent runs", ask, {}, false, /*quiet=*/true});
}

void OpenDialog::draw(UiState& state) {
  if (!finder_.is_open()) return;
  list(state);
  std::vector<Finder::Entry> recent;
  const std::string path = path_as_typed(finder_.text());
  const Words words(finder_.text());
  if (listed_ != nullptr && listed_->known)
    for (const RecentRun& run : listed_->runs)
      if (words.in(run.path))
        recent.push_back(
            {run.path, run.there ? "" : "is gone", [this, &state, at = run.path] { (state.*act_)(at); }});
  std::vector<Finder::Entry> entries;
  if (!path.empty())
    entries.push_back({verb_ + (" " + path), "", [this, &state, path] { (state.*act_)(path); }});
  // Words that are no path are used to search them.
  const bool first = path.find('/') != std::string::npos;
  entries.insert(first ? entries.end() : entries.begin(), recent.begin(), recent.end());
  finder_.draw(entries);
}

}  // namespace nanquest::viewer
