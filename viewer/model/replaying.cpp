#include "viewer/model/replaying.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "viewer/model/kept.h"
#include "viewer/model/path_words.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "nanquest-replay";
/// How it begins its errors and warnings.
constexpr std::string_view kSays = "nanquest-replay: ";

struct TaskWords {
  const char *sub, *doing, *done;
};
/// By task: the sub-command, "replaying step 131", "step 131 was replayed".
constexpr std::array<TaskWords, 3> kWords = {{{"", "replaying", "was replayed"},
                                              {"rewind", "rewinding from", "was rewound"},
                                              {"repro", "writing a repro of", "has its repro"}}};

const TaskWords& words_of(ReplayTask task) {
  return kWords[static_cast<std::size_t>(task)];
}

/// "" if it is in none of the folders in which programs of nanquest lie.
std::string path_of_program() {
  std::vector<std::string> folders;
  if (const char* named = std::getenv("NANQUEST_BIN"); named != nullptr) folders.emplace_back(named);
  std::error_code ec;
  if (const fs::path own = fs::read_symlink("/proc/self/exe", ec); !ec)
    folders.push_back(own.parent_path().string());
  const char* path = std::getenv("PATH");
  for (std::string_view left = path == nullptr ? "" : path; !left.empty();) {
    const std::size_t end = left.find(':');
    folders.emplace_back(left.substr(0, end));
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
  }
  for (const std::string& folder : folders) {
    const fs::path file = fs::path(folder) / kProgram;
    if (!folder.empty() && fs::is_regular_file(file, ec) && access(file.c_str(), X_OK) == 0)
      return file.string();
  }
  return "";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : text + '\n') {
    if (c != '\n' && c != '\r')
      line += c;
    else if (!line.empty())
      lines.push_back(std::exchange(line, ""));
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines, std::size_t from, const char* between) {
  std::string text;
  for (std::size_t i = from; i < lines.size(); ++i) text += (i == from ? "" : between) + lines[i];
  return text;
}

/// Its errors and warnings; without any, the last lines that it printed there.
std::string complaint_of(const Child& child, bool any) {
  const std::vector<std::string> lines = lines_of(child.reported());
  std::vector<std::string> said;
  for (const std::string& line : lines)
    if (line.starts_with(kSays)) said.push_back(line.substr(kSays.size()));
  if (!said.empty() || !any) return joined(said, 0, "\n");
  return joined(lines, lines.size() - std::min<std::size_t>(lines.size(), 3), "\n");
}

std::string seconds_text(std::chrono::steady_clock::time_point from) {
  const auto past = std::chrono::steady_clock::now() - from;
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(past).count()) + " s";
}

}  // namespace

std::string Replaying::command() const {
  return command_to_replay(snapshot_, words_of(task_).sub);
}

Status Replaying::start(ReplayTask task, const std::string& snapshot, const std::string& what) {
  if (runs()) return Error{ErrorCode::usage, doing_, "cancel it first"};
  given_ = snapshot;
  snapshot_ = whole_path(snapshot);
  what_ = what;
  task_ = task;
  cancelled_ = ended_ = false;
  failed_ = true;
  const auto refuse = [this](const Error& error) {
    outcome_ = error.text();
    return Status(error);
  };
  const std::string program = path_of_program();
  if (program.empty())
    return refuse({ErrorCode::unsupported,
                   std::string(kProgram) +
                       " is neither in the folder NANQUEST_BIN, nor beside this program, nor on PATH",
                   "install it, build its target, or run where it is: " + command()});
  std::vector<std::string> words = {program};
  if (*words_of(task).sub != '\0') words.emplace_back(words_of(task).sub);
  words.push_back(snapshot_);
  Result<std::unique_ptr<Child>> child = Child::start(words);
  if (!child) return refuse(child.error());
  child_ = std::move(child).value();
  began_ = std::chrono::steady_clock::now();
  failed_ = false;
  outcome_.clear();
  doing_ = std::string(words_of(task).doing) + " " + what_;
  return {};
}

bool Replaying::look() {
  if (!runs()) return false;
  child_->look();
  if (child_->ended()) {
    finish();
    return true;
  }
  const std::vector<std::string> lines = lines_of(child_->reported());
  std::string now = std::string(words_of(task_).doing) + " " + what_ + ", " + seconds_text(began_);
  if (cancelled_)
    now += ": being cancelled";
  else if (!lines.empty())
    now += ": " + lines.back();
  const bool news = now != doing_;
  doing_ = std::move(now);
  return news;
}

void Replaying::finish() {
  const std::unique_ptr<Child> child = std::move(child_);
  doing_.clear();
  ended_ = true;
  const std::string took = seconds_text(began_);
  if (cancelled_) {
    outcome_ = std::string(words_of(task_).doing) + " " + what_ + " was cancelled after " + took;
    return;
  }
  if (child->signal() != 0) {
    failed_ = true;
    outcome_ = std::string(kProgram) + " was ended by signal " + std::to_string(child->signal()) + " (" +
               strsignal(child->signal()) + ") after " + took + "; in a terminal: " + command();
    return;
  }
  const bool done =
      child->code() == static_cast<int>(ExitCode::ok) || child->code() == static_cast<int>(ExitCode::finding);
  const std::string complaint = complaint_of(*child, !done);
  failed_ = !done || !complaint.empty();
  if (!done) {
    outcome_ = complaint.empty() ? std::string(kProgram) + " ended with code " +
                                       std::to_string(child->code()) + " and gave no reason"
                                 : complaint;
    outcome_ += "\nin a terminal: " + command();
    return;
  }
  outcome_ = what_ + " " + words_of(task_).done + " in " + took;
  const std::vector<std::string> printed = lines_of(child->printed());
  if (task_ == ReplayTask::rewind && !printed.empty()) outcome_ += ": " + printed.front();
  if (task_ == ReplayTask::repro) outcome_ += ": " + joined(printed, 0, ", ");
  if (!complaint.empty()) outcome_ += "\n" + complaint;
}

void Replaying::cancel() {
  if (!runs() || cancelled_) return;
  cancelled_ = true;
  child_->stop();
}

bool Replaying::take_ended() {
  return std::exchange(ended_, false);
}

bool may_replay(const Session& session) {
  return session.entry() != nullptr && session.incident() != nullptr;
}

bool wants_replay(const Session& session) {
  return may_replay(session) && (!session.verdict() || !session.incident()->replayed);
}

}  // namespace nanquest::viewer
