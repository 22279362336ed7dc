/// RunSeries: the series of a run: one rank's history and headroom as they are shown, and summaries of the
/// series of all ranks. A copy is cheap: what was read is shared and never changed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series_follow.h"
#include "viewer/model/headroom.h"
#include "viewer/model/history.h"
#include "viewer/model/progress.h"
#include "viewer/model/series_word.h"

namespace nanquest::viewer {

class RunSeries {
 public:
  /// Reads the series of `rank`, or the first there is, from where the last reading ended as long as the file
  /// is the same; with `all`, also the summaries of all ranks.
  void read(const RunListing& listing, std::int32_t rank, bool all, Progress* progress);
  /// The next reading begins at the first row.
  void begin_anew() { place_ = {}; }

  std::int32_t rank() const { return rank_; }
  const History& history() const { return *history_; }
  const std::string& error() const { return error_; }
  const Headroom& headroom() const { return *headroom_; }
  const std::string& headroom_error() const { return headroom_error_; }
  const std::vector<SeriesWord>& words() const { return words_; }

 private:
  void read_headroom(const std::string& run);
  std::shared_ptr<const History> read_shown(const std::string& path, std::uint64_t bytes, Progress* progress);

  std::int32_t rank_ = 0;
  SeriesPlace place_;  ///< how far the shown series was read
  std::shared_ptr<const History> history_ = std::make_shared<History>();
  std::shared_ptr<const Headroom> headroom_ = std::make_shared<Headroom>();
  std::string error_, headroom_error_;
  std::vector<SeriesWord> words_;
};

}  // namespace nanquest::viewer
