#include "viewer/model/taster.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "probe/snapshot/ranges.h"
#include "probe/snapshot/series.h"
#include "viewer/model/file_stamp.h"
#include "viewer/model/incident.h"

namespace nanquest::viewer {
namespace {

Taster& the_taster() {
  static Taster taster;
  return taster;
}

constexpr const char* kTastes[] = {"snapshot", "series", "ranges"};

/// Between fork and exec: nothing but system calls.
[[noreturn]] void become(char* const* arguments, const ChildLimits& limits) {
  const auto limit = [](auto what, rlim_t most) {
    const rlimit both{most, most};
    (void)setrlimit(what, &both);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_AS, static_cast<rlim_t>(limits.memory));
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int descriptor : {0, 1, 2})
    if (nowhere >= 0) (void)dup2(nowhere, descriptor);
  execv(arguments[0], arguments);
  _exit(127);
}

/// Its status, or nothing if it had to be ended.
std::optional<int> wait_for(pid_t child, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (auto pause = std::chrono::microseconds(500);;
       pause = std::min(pause * 2, std::chrono::microseconds(20'000))) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if ((ended < 0 && errno != EINTR) || std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(pause);
  }
  (void)kill(child, SIGKILL);
  (void)waitpid(child, nullptr, 0);
  return std::nullopt;
}

Error brought_down(const std::string& how) {
  return {ErrorCode::bad_file, how, "it is not opened; ask for another copy, or report the file"};
}

}  // namespace

void taste_with(Taster taster) {
  the_taster() = std::move(taster);
}

Status tasted(Taste as, const std::string& path) {
  return the_taster() ? the_taster()(as, path) : Status();
}

Result<SnapshotReader> open_tasted(const std::string& path) {
  if (const Status well = tasted(Taste::snapshot, path); !well) return well.error();
  return SnapshotReader::open(path);
}

Status run_apart(const std::vector<std::string>& command, const ChildLimits& limits) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0)
    return Error{ErrorCode::io, std::string("no child process can be started: ") + std::strerror(errno),
                 "leave out --sandbox"};
  if (child == 0) become(arguments.data(), limits);
  const std::optional<int> status = wait_for(child, limits.seconds);
  if (!status) return brought_down("the reader did not end within its time");
  if (WIFSIGNALED(*status))
    return brought_down("the reader crashed on it (signal " + std::to_string(WTERMSIG(*status)) + ")");
  if (WEXITSTATUS(*status) == 127)
    return Error{ErrorCode::io, command.front() + " cannot be run", "leave out --sandbox"};
  return {};
}

Taster child_taster(std::string program, ChildLimits limits) {
  struct Answers {
    std::mutex mutex;
    std::map<std::string, Status> answers;  ///< by kind, path and how the file looked
  };
  return [program = std::move(program), limits, known = std::make_shared<Answers>()](
             Taste as, const std::string& path) {
    const char* kind = kTastes[static_cast<int>(as)];
    const std::string key = std::string(kind) + ':' + file_stamp(path);
    {
      const std::lock_guard lock(known->mutex);
      if (const auto found = known->answers.find(key); found != known->answers.end()) return found->second;
    }
    Status answer = run_apart({program, "--taste", kind, "--taste-file", path}, limits);
    if (!answer) {
      Error error = answer.error();
      error.message = path + ": " + error.message;
      answer = error;
    }
    const std::lock_guard lock(known->mutex);
    return known->answers.try_emplace(key, answer).first->second;
  };
}

void taste(Taste as, const std::string& path) {
  if (as == Taste::series) return (void)read_series(path);
  if (as == Taste::ranges) return (void)read_ranges(path);
  Result<SnapshotReader> reader = SnapshotReader::open(path);
  if (!reader) return;
  const OpenIncident incident(std::move(reader).value(), "", std::nullopt);
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  std::uint64_t read = 0;
  for (const StoredTensor& tensor : incident.tensors)
    if (const auto detail = load_detail(incident.reader_of(tensor), tensor);
        detail && (read += detail->scan.count * 8) > most)
      break;
}

}  // namespace nanquest::viewer
