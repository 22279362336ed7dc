/// BatchSource: which samples a step is made of: the order of the task, without those that may not be used.
/// They may be made ahead, on a thread of their own. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/loop/config.h"
#include "trainer/loop/prefetch.h"
#include "trainer/task/quarantine.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

class BatchSource {
 public:
  /// `config`, `task` and `counters` (where in the order the run is) must outlive it. `say` tells a person.
  BatchSource(const LoopConfig& config, const Task& task, const Counters& counters,
              std::function<void(const std::string&)> say);

  /// Opens the file of samples that may not be used; one of several ranks `writes` it, the others read it.
  Status open_quarantine(bool writes);
  /// Says what that holds.
  void tell_of_quarantine() const;
  /// Makes batches ahead from now on, if the settings ask for it; until `stop_ahead`.
  void begin_ahead();
  void stop_ahead() { prefetcher_.reset(); }
  /// Waits until the task is not used by another thread.
  void settle();

  /// The next batch. `bad_file` if a sample of it may not be used and the run is to stop at such, or none
  /// may.
  Result<Batch> next();
  /// Samples of the order that it has used up.
  std::int64_t span() const { return span_; }
  /// Notes samples that were not learned from, and with a file of them that they are never to be used again.
  void drop(const std::vector<std::string>& ids, const std::string& why);

  /// Ids of all that were dropped.
  std::vector<std::string> dropped;

 private:
  /// Samples that may not be used, by row.
  Result<std::vector<bool>> unfit(const Samples& samples);

  const LoopConfig& config_;
  const Task& task_;
  const Counters& counters_;
  std::function<void(const std::string&)> say_;
  std::optional<Quarantine> quarantine_;
  std::set<std::string> unfit_;  ///< ids of samples that were found so
  std::int64_t span_ = 0;
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace nanquest::trainer
