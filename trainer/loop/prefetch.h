/// The next samples, made on a thread of their own while a step runs.
///
///     Prefetcher prefetcher(task);
///     Samples now = prefetcher.take(position, 8);   // what load(task, position, 8) would have given
///     prefetcher.ahead(position + 8, 8);            // goes on while `now` is learned from
///
/// It only makes early what would be made anyway: what is not taken is dropped, with the error that making it
/// may have met, and no position of a run is kept here.
/// Never: prints, calls the task from two threads for samples at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "trainer/task/task.h"

namespace nanquest::trainer {

/// Training samples as the task gives them, and which of them it says no step should see.
struct Samples {
  Batch batch;
  std::vector<Fault> faults;
};

/// Makes them on this thread.
Samples load(const Task& task, std::int64_t position, std::int64_t size);

class Prefetcher {
 public:
  /// Starts the thread. Throws std::system_error if there can be none. `task` must outlive it.
  explicit Prefetcher(const Task& task);
  /// Ends the thread; waits for what it is making.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Begins to make these samples, in place of any that were asked for before.
  void ahead(std::int64_t position, std::int64_t size);
  /// These samples, made ahead or now. Throws what making them threw.
  Samples take(std::int64_t position, std::int64_t size);
  /// Waits until the thread is not using the task.
  void settle();

 private:
  struct Wanted {
    std::int64_t position = 0, size = 0;
    bool operator==(const Wanted&) const = default;
  };
  void work();

  const Task& task_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false, busy_ = false;  ///< busy: asked for and not yet made
  std::optional<Wanted> wanted_;        ///< what is made or being made
  std::optional<Samples> made_;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace nanquest::trainer
