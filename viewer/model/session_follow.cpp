// A run that changes while it is shown: reads it again, and notices if it was moved.
#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "viewer/model/session.h"

namespace nanquest::viewer {

Status Session::reload_own() {
  lost_ = files_.look();
  if (!lost_.empty()) return Error{ErrorCode::bad_file, lost_, ""};
  const Selection before = selection_;
  const IncidentFiles shown = entry() == nullptr ? IncidentFiles{} : entry()->files;
  shown_ = std::make_shared<const ReadIncident>();
  values_ = {};
  selection_.incident = -1;
  if (Status loaded = load(); !loaded) return loaded;
  int row = -1;
  for (std::size_t i = 0; i < incidents().size(); ++i)
    if (const IncidentFiles& files = incidents()[i].files;
        before.incident >= 0 && files.snapshot == shown.snapshot && files.step == shown.step)
      row = static_cast<int>(i);
  if (row < 0) {
    start_selection();
    return {};
  }
  select_incident(row);
  Selection again = before;
  again.incident = row;
  restore(again);
  return {};
}

/// False if it can't be read, or if it lists other incidents than before.
bool Session::read_manifest_again() {
  Result<Manifest> now = read_manifest(path());
  const auto same = [](const ManifestIncident& a, const ManifestIncident& b) {
    return std::tie(a.step, a.rank, a.file, a.gate, a.summary) ==
           std::tie(b.step, b.rank, b.file, b.gate, b.summary);
  };
  if (!now || !manifest_ ||
      !std::equal(now->incidents.begin(), now->incidents.end(), manifest_->incidents.begin(),
                  manifest_->incidents.end(), same))
    return false;
  manifest_ = std::move(now).value();
  note_reading(false);
  return true;
}

bool Session::poll_folder() {
  Result<RunFolder> now = read_run_folder(path());
  if (!now || *now == *folder_) return false;
  nothing_because_ = now->headline();
  folder_ = std::make_shared<RunFolder>(std::move(now).value());
  note_reading();
  return true;
}

bool Session::poll_own() {
  if (nothing_) return folder_ != nullptr && poll_folder();
  std::string where = files_.look();
  if (!where.empty() || !lost_.empty()) {
    const bool news = where.empty() || lost_.empty();
    lost_ = std::move(where);
    return news && (!lost_.empty() || reload_own().ok());
  }
  const RunFiles::Stamps& before = files_.read();
  RunFiles::Stamps now = files_.stamps();
  // A rank that leaves a row adds no incident, but the folder changes all the same.
  if (!manifest_ || manifest_->world_size < 2) now.folder = before.folder;
  if (now == before) return false;
  if (now.incidents != before.incidents || now.folder != before.folder) return reload_own().ok();
  if (now.manifest != before.manifest && !read_manifest_again()) return reload_own().ok();
  if (now.series != before.series) load_series(series_.rank());
  keep_statistic();
  files_.note_read(std::move(now));
  files_.note_written();
  return true;
}

bool Session::poll_beside() {
  const bool news = beside_.poll();
  if (news) note_reading(false);
  return news;
}

bool Session::poll() {
  const bool own = poll_own(), beside = poll_beside();
  if (own || beside) beside_.compare_with(*this);
  return own || beside;
}

Status Session::reload() {
  Status own = reload_own();
  (void)poll_beside();
  beside_.compare_with(*this);
  return own;
}

Status Session::compare_with(const std::vector<std::string>& paths) {
  if (Status chosen = beside_.choose(paths, progress_); !chosen) return chosen;
  beside_.compare_with(*this);
  note_reading(false);
  return {};
}

const std::string& Session::lost_of_any() const {
  const std::string* beside = lost_.empty() ? beside_.lost() : nullptr;
  return beside == nullptr ? lost_ : *beside;
}

}  // namespace nanquest::viewer
