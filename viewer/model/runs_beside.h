/// RunsBeside: the runs (or snapshots) that are shown beside the open one, and what differs.
/// A copy is cheap.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "viewer/model/comparison.h"
#include "viewer/model/progress.h"

namespace nanquest::viewer {

class RunsBeside {
 public:
  const std::vector<std::shared_ptr<const Session>>& runs() const { return runs_; }
  /// Null while there is none beside it.
  const Comparison* comparison() const { return comparison_.get(); }
  /// That the first of those that are gone was moved or removed; null if none was.
  const std::string* lost() const;

  /// Takes these in place of those that were; none for none. On failure (Session::open; `usage` for more than
  /// kMostRuns) the present ones stay. Reads those that are not there yet.
  Status choose(const std::vector<std::string>& paths, Progress* progress);
  /// Reads again what changed of them. True if something is new.
  bool poll();
  /// Compares them with `own` again.
  void compare_with(const Session& own);

 private:
  std::vector<std::shared_ptr<const Session>> runs_;
  std::shared_ptr<const Comparison> comparison_;
};

}  // namespace nanquest::viewer
