/// Loader: the one thread that reads. libhdf5 takes one caller at a time; here that is the loader, from its
/// first errand to its end. Who draws asks and goes on drawing.
///
///     Loader loader(glfwPostEmptyEvent);
///     loader.ask(session, {"step 90", [](Session& s) { s.select_step(90); return true; }});
///     // every frame, before anything is drawn:
///     loader.collect(session);
///
/// An errand works on a copy of the session; what it has read takes the session's place at `collect`, so that
/// nothing changes while it is drawn. One errand at a time: the newest wish replaces the one before it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "viewer/model/progress.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

class Loader {
 public:
  struct Errand {
    std::string what;                    ///< "step 90": stands behind "reading"
    std::function<bool(Session&)> work;  ///< on the loader's thread; false: nothing is new
    std::function<void()> done = {};     ///< after its session took the place, on the thread that collects
    bool selects = false;                ///< what it selects is what the person wants to see
    bool quiet = false;                  ///< background work: any other errand goes first
  };

  /// `wake` is called on the loader's thread whenever there is something to collect.
  explicit Loader(std::function<void()> wake = {});
  /// Stops what is being read, and waits for that. From then on the caller's thread is the one that reads.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Replaces `wake`; it is not called any more once this returns.
  void wake_with(std::function<void()> wake);

  // The others are for one thread, the one that draws.

  /// Starts an errand. What is under way is given up, unless the new one is quiet: then nothing happens.
  void ask(const Session& session, Errand errand);
  /// Puts what was read in the place of `session`. True if that happened. What was selected in the meantime
  /// stays selected.
  bool collect(Session& session);
  /// True if `collect` has something to do.
  bool has_news();
  /// Waits until there are news, for so long at most. True if there are.
  bool wait(std::chrono::milliseconds most);
  /// Cancels the errand in progress; `session` stays as it is. False if there is none, or only background
  /// work.
  bool cancel();
  /// Grows whenever somebody gives something up, and when an errand fails: who asks by itself for what is
  /// missing does not ask for it again then.
  std::uint64_t stops() const { return stops_; }
  /// True while an errand is under way, quiet ones among them.
  bool busy() const { return current_ != nullptr; }
  /// "reading step 90, 40 %"; "" while nothing but background work runs.
  std::string doing() const;
  /// What kept the last errand that was collected from being done, as too little memory; "" for nothing.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Job;
  void run();
  void perform(Job& job);
  void give_up();

  std::mutex mutex_;
  std::condition_variable asked_, finished_;
  std::function<void()> wake_;
  std::shared_ptr<Job> waiting_;  ///< not begun yet
  bool ends_ = false;

  std::shared_ptr<Job> current_;  ///< of the thread that draws
  std::string trouble_;
  std::uint64_t stops_ = 0;
  /// Every incident that a session may hold, so that its file is closed where it is read.
  std::vector<std::shared_ptr<const OpenIncident>> kept_;
  std::thread thread_;
};

}  // namespace nanquest::viewer
