#include "probe/program/reports.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "probe/snapshot/new_file.h"

namespace nanquest::program {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return (std::ostringstream() << file.rdbuf()).str();
}

}  // namespace

void say(const std::string& line) {
  const std::string whole = "nanquest: " + line + "\n";
  (void)!::write(STDERR_FILENO, whole.data(), whole.size());
}

bool note(const nlohmann::json& facts) {
  static auto* told = new nlohmann::json(nlohmann::json::object());
  try {
    const std::string folder = variable("NANQUEST_REPORTS");
    std::error_code error;
    if (folder.empty() || !fs::is_directory(folder, error)) return false;
    told->update(facts);
    const fs::path path = fs::path(folder) / std::to_string(::getpid()), part = path.string() + ".part";
    std::ofstream(part) << told->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    fs::rename(part, path, error);
    return !error;
  } catch (const std::exception&) {
    return false;
  }
}

std::string shorter(const std::string& path) {
  std::error_code error;
  const fs::path relative = fs::relative(path, error);
  return error || relative.empty() || *relative.begin() == ".." ? path : relative.string();
}

int number_in_environment(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    const std::string text = variable(name);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && error == std::errc() && end == text.data() + text.size() && number >= 0)
      return number;
  }
  return otherwise;
}

std::string claim(const std::string& of_run, int rank) {
  const int restarts = number_in_environment({"TORCHELASTIC_RESTART_COUNT"}, 0);
  std::string run_dir =
      restarts > 0 ? (fs::path(of_run) / ("restart-" + std::to_string(restarts))).string() : of_run;
  const std::string process = std::to_string(::getpid());
  std::string run = variable("NANQUEST_RUN_ID");
  if (run.empty()) run = "pid-" + process;
  fs::create_directories(run_dir);
  const fs::path mark = fs::path(run_dir) / (".process.r" + std::to_string(rank));
  const std::string mine = run + " " + process + "\n";
  for (int attempt = 0; attempt < 2; ++attempt) {
    const NewFile made = make_new_file(mark.string(), mine);
    if (made == NewFile::made) return run_dir;
    if (made == NewFile::failed)
      throw fs::filesystem_error("can't be written", mark, {errno, std::generic_category()});
    const std::string holder = content(mark);
    if (holder.substr(0, holder.find(' ')) == run && holder != mine) break;
    fs::remove(mark);  // of an earlier run
  }
  return (fs::path(run_dir) / ("process-" + process)).string();
}

}  // namespace nanquest::program
