#include "viewer/model/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace nanquest::viewer {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 10;
constexpr std::chrono::seconds kTimeToEnd{2};

/// Both ends of a pipe; -1 where there is none.
struct Pipe {
  int from = -1, into = -1;
  bool open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    from = ends[0], into = ends[1];
    return fcntl(from, F_SETFL, O_NONBLOCK) == 0;
  }
  void close() {
    for (int* end : {&from, &into})
      if (*end >= 0) ::close(std::exchange(*end, -1));
  }
};

/// Between fork and exec: nothing but system calls.
[[noreturn]] void become(char* const* arguments, const ChildMay& may, pid_t parent, int printed,
                         int reported) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it ended before that was asked for
  const auto limit = [](auto what, rlim_t most) {
    const rlimit both{most, most};
    (void)setrlimit(what, &both);
  };
  limit(RLIMIT_CORE, 0);
  if (!may.write) limit(RLIMIT_FSIZE, 0);
  if (may.memory != ~std::uint64_t{0}) limit(RLIMIT_AS, static_cast<rlim_t>(may.memory));
  const int nowhere = open("/dev/null", O_RDWR);
  const std::array<int, 3> streams = {nowhere, printed >= 0 ? printed : nowhere,
                                      reported >= 0 ? reported : nowhere};
  for (int stream = 0; stream < 3; ++stream)
    if (streams[static_cast<std::size_t>(stream)] >= 0)
      (void)dup2(streams[static_cast<std::size_t>(stream)], stream);
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const std::vector<std::string>& command, const ChildMay& may) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Pipe printed, reported;
  const pid_t parent = getpid();
  const bool heard = !may.print || (printed.open() && reported.open());
  const pid_t pid = heard ? fork() : -1;
  if (pid == 0) become(arguments.data(), may, parent, printed.into, reported.into);
  const int error = errno;
  if (pid < 0) {
    printed.close();
    reported.close();
    return Error{ErrorCode::io, std::string("no child process can be started: ") + std::strerror(error),
                 "end other programs"};
  }
  std::unique_ptr<Child> child(new Child);
  child->pid_ = pid;
  child->printed_.pipe = std::exchange(printed.from, -1);
  child->reported_.pipe = std::exchange(reported.from, -1);
  printed.close();
  reported.close();
  return child;
}

Child::~Child() {
  if (pid_ > 0) {
    (void)kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  printed_.close();
  reported_.close();
}

void Child::Heard::close() {
  if (pipe >= 0) ::close(std::exchange(pipe, -1));
}

bool Child::Heard::read() {
  bool news = false;
  std::array<char, 4096> some;
  // Bounded: a child that prints without end must not hold up a frame.
  for (int round = 0; pipe >= 0 && round < 64; ++round) {
    const ssize_t bytes = ::read(pipe, some.data(), some.size());
    if (bytes == 0) close();
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    text.append(some.data(), static_cast<std::size_t>(bytes));
    news = true;
  }
  if (text.size() > kMostKept) text.erase(0, text.size() - kMostKept);
  return news;
}

void Child::stop() {
  if (ended()) return;
  (void)kill(pid_, SIGTERM);
  kill_at_ = std::chrono::steady_clock::now() + kTimeToEnd;
}

bool Child::look() {
  if (ended()) return false;
  if (std::chrono::steady_clock::now() >= kill_at_) (void)kill(pid_, SIGKILL);
  int status = 0;
  const pid_t answer = waitpid(pid_, &status, WNOHANG);
  const bool over = answer == pid_ || (answer < 0 && errno == ECHILD);
  // After its end: what it printed last is in the pipes then.
  const bool printed = printed_.read(), reported = reported_.read();
  if (!over) return printed || reported;
  pid_ = -1;
  if (answer > 0 && WIFSIGNALED(status)) signal_ = WTERMSIG(status);
  code_ = answer > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
  printed_.close();
  reported_.close();
  return true;
}

}  // namespace nanquest::viewer
