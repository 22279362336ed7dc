/// RunFiles: the files of a run directory, or of one snapshot: which there are, and whether they changed.
/// A copy is cheap.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "probe/base/result.h"
#include "probe/snapshot/run_dir.h"
#include "viewer/model/run_state.h"

namespace nanquest::viewer {

class RunFiles {
 public:
  /// How the files look from outside: another stamp means other contents.
  struct Stamps {
    std::string series, manifest, incidents, folder;
    bool operator==(const Stamps&) const = default;
  };

  RunFiles() = default;
  /// `path`: a run directory (`is_run`) or a snapshot. Nothing is looked at yet.
  RunFiles(std::string path, bool is_run) : path_(std::move(path)), is_run_(is_run) {}

  const std::string& path() const { return path_; }
  bool is_run() const { return is_run_; }
  const RunListing& listing() const { return *listing_; }

  /// Lists a run directory's files; of a snapshot there is nothing to list. Errors are `list_run`'s.
  Status list();
  /// The same, to see whether run or snapshot is still there: "" if it is where it was opened; otherwise a
  /// sentence, and the listing stays.
  std::string look();
  /// The files as they are now.
  Stamps stamps() const;
  /// Those whose contents were read; to be taken before reading, as what changes meanwhile is read again.
  const Stamps& read() const { return *read_; }
  void note_read(Stamps stamps) { read_ = std::make_shared<const Stamps>(std::move(stamps)); }

  /// When manifest or series were last written, as far as that was noted.
  std::filesystem::file_time_type written() const { return written_; }
  void note_written() { written_ = last_written(*listing_); }

 private:
  std::string path_;
  bool is_run_ = false;
  std::shared_ptr<const RunListing> listing_ = std::make_shared<RunListing>();
  std::shared_ptr<const Stamps> read_ = std::make_shared<Stamps>();
  std::filesystem::file_time_type written_;
};

}  // namespace nanquest::viewer
