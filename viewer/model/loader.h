/// Loader: the one thread that reads. libhdf5 takes one caller at a time; here that is the loader, from its
/// first errand to its end. The drawing thread sends errands and goes on drawing.
///
///     Loader loader(glfwPostEmptyEvent);
///     loader.ask(session, {"step 90", [](Session& s) { s.select_step(90); return true; }});
///     // every frame, before anything is drawn:
///     loader.collect(session);
///
/// An errand works on a copy of the session; the result replaces the session at `collect`, so that nothing
/// changes while it is drawn. One errand at a time: a newer one replaces the one before it.
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
    std::string what;                    ///< "step 90": shown after "reading"
    std::function<bool(Session&)> work;  ///< on the loader's thread; false: nothing is new
    std::function<void()> done = {};     ///< after its session replaced the old one, on the thread that
                                         ///< collects
    bool selects = false;                ///< keep the errand's selection
    bool quiet = false;                  ///< background work: any other errand goes first
  };

  /// `wake` is called on the loader's thread whenever there is something to collect.
  explicit Loader(std::function<void()> wake = {});
  /// Stops the current errand, and waits for that. From then on the caller's thread is the one that reads.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Replaces `wake`; it is not called any more once this returns.
  void wake_with(std::function<void()> wake);

  // All other functions are for the thread that draws.

  /// Starts an errand. An errand in progress is cancelled, unless the new one is quiet: then nothing happens.
  void ask(const Session& session, Errand errand);
  /// Replaces `session` by what was read. True if that happened. What was selected in the meantime stays
  /// selected.
  bool collect(Session& session);
  /// True if `collect` has something to do.
  bool has_news();
  /// Waits until there are news, at most this long. True if there are.
  bool wait(std::chrono::milliseconds most);
  /// Cancels the errand in progress; `session` stays as it is. False if there is none, or only background
  /// work.
  bool cancel();
  /// Grows whenever an errand is cancelled or fails: automatic requests for missing data are not repeated
  /// then.
  std::uint64_t stops() const { return stops_; }
  /// True while an errand is in progress, also a quiet one.
  bool busy() const { return current_ != nullptr; }
  /// "reading step 90, 40 %"; "" while there is only background work.
  std::string doing() const;
  /// Why the last collected errand failed, for example too little memory; "" if it did not.
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
  /// Every incident that a session may hold, so that its file is closed on the loader's thread.
  std::vector<std::shared_ptr<const OpenIncident>> kept_;
  std::thread thread_;
};

}  // namespace nanquest::viewer
