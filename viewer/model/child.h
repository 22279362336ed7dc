/// Child: a program that runs beside this one. It is started without a shell, reads nothing, and ends when
/// this program ends. Nothing here waits for it.
///
///     Result<std::unique_ptr<Child>> child = Child::start({"/usr/bin/nanquest-replay", "step.h5"});
///     while (!(*child)->ended()) if ((*child)->look()) show((*child)->reported());
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::viewer {

/// What a child process may do.
struct ChildMay {
  bool print = true;                         ///< false: what it prints is dropped
  bool write = true;                         ///< false: no file that it opens can grow
  std::uint64_t memory = ~std::uint64_t{0};  ///< bytes of address space
};

class Child {
 public:
  /// Starts the program at the path `command[0]`. `io` if no process can be started; a file that is no
  /// program ends with code 127. The child is killed when the calling thread ends, so start it from one that
  /// lasts.
  static Result<std::unique_ptr<Child>> start(const std::vector<std::string>& command,
                                              const ChildMay& may = {});
  /// Kills the child if it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Reads what the child printed, and notes its end. True if there is anything new. Never waits.
  bool look();
  /// Asks the child to end (SIGTERM); `look` kills it if it is still there two seconds later.
  void stop();
  bool ended() const { return pid_ < 0; }
  /// The signal that ended it; 0 if it ended by itself, or has not ended.
  int signal() const { return signal_; }
  /// Its exit code once it ended by itself.
  int code() const { return code_; }
  /// The end of what it printed on stdout, and on stderr; at most 64 KiB each.
  const std::string& printed() const { return printed_.text; }
  const std::string& reported() const { return reported_.text; }

 private:
  /// The reading end of a pipe, and what came out of it.
  struct Heard {
    int pipe = -1;
    std::string text;
    bool read();
    void close();
  };
  Child() = default;

  pid_t pid_ = -1;
  int signal_ = 0, code_ = 0;
  Heard printed_, reported_;
  std::chrono::steady_clock::time_point kill_at_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace nanquest::viewer
