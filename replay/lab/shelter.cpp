#include "replay/lab/shelter.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

namespace nanquest {
namespace {

constexpr std::size_t kTextBytes = 201;

volatile std::sig_atomic_t child_now = 0;

void pass_on(int signal) {
  if (child_now > 0) kill(static_cast<pid_t>(child_now), signal);
}

/// A page that both processes see.
class SharedText {
 public:
  SharedText()
      : text_(static_cast<char*>(
            mmap(nullptr, kTextBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedText() {
    if (there()) munmap(text_, kTextBytes);
  }
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;
  bool there() const { return text_ != MAP_FAILED; }
  void set(const std::string& what) {
    if (!there()) return;
    const std::size_t bytes = std::min(what.size(), kTextBytes - 1);
    std::memcpy(text_, what.data(), bytes);
    text_[bytes] = 0;
  }
  std::string get() const { return there() ? std::string(text_) : ""; }

 private:
  char* text_;
};

/// Status of a child process that ran `work`, as from waitpid; -1 if there is none.
int status_of(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);  // signals come by way of the parent, once; Ctrl-Z stops only the parent
    if (getppid() != parent) _exit(128 + SIGKILL);
    const int code = work();
    std::fflush(nullptr);
    _exit(code);
  }
  child_now = child;
  constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  std::vector<void (*)(int)> before;
  for (const int signal : kPassedOn) before.push_back(std::signal(signal, pass_on));
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  child_now = 0;
  for (std::size_t i = 0; i < before.size(); ++i) std::signal(kPassedOn[i], before[i]);
  return status;
}

/// 128 + the signal that ended it, as in shells, or its exit code.
int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGABRT;
}

}  // namespace

int sheltered(const std::function<int(const Doing&)>& work,
              const std::function<int(const std::string& crash)>& instead) {
  SharedText doing;
  const Doing tell = [&](const std::string& what) { doing.set(what); };
  const int status = status_of([&] { return work(tell); });
  if (status < 0) return work(tell);
  if (WIFEXITED(status) || !is_fault(WTERMSIG(status))) return code_of(status);
  const std::string what = doing.get();
  const std::string crash =
      std::string(strsignal(WTERMSIG(status))) + (what.empty() ? "" : " while: " + what);
  const int after = status_of([&] { return instead(crash); });
  return after < 0 ? instead(crash) : code_of(after);
}

bool is_crash(int code) {
  return code > 128 && is_fault(code - 128);
}

}  // namespace nanquest
