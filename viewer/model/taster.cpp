#include "viewer/model/taster.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "probe/snapshot/ranges.h"
#include "probe/snapshot/series.h"
#include "viewer/model/child.h"
#include "viewer/model/file_stamp.h"
#include "viewer/model/incident.h"

namespace nanquest::viewer {
namespace {

Taster& the_taster() {
  static Taster taster;
  return taster;
}

constexpr const char* kTastes[] = {"snapshot", "series", "ranges"};

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
  Result<std::unique_ptr<Child>> started =
      Child::start(command, {.print = false, .write = false, .memory = limits.memory});
  if (!started) return Error{started.error().code, started.error().message, "leave out --sandbox"};
  Child& child = **started;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limits.seconds);
  for (auto pause = std::chrono::microseconds(500); !child.look();
       pause = std::min(pause * 2, std::chrono::microseconds(20'000))) {
    if (std::chrono::steady_clock::now() >= end)
      return brought_down("the reader did not end within its time");
    std::this_thread::sleep_for(pause);
  }
  if (child.signal() != 0)
    return brought_down("the reader crashed on it (signal " + std::to_string(child.signal()) + ")");
  if (child.code() == 127)
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
