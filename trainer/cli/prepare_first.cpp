#include "trainer/cli/prepare_first.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "trainer/config/shell_word.h"

extern char** environ;

namespace nanquest::trainer {
namespace {

/// Starts a program from PATH, with its results on our stderr; -1 if it can't be run.
pid_t begun(std::vector<std::string> command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? child : -1;
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return exit_code(ErrorCode::io);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

NotPrepared prepare_first(const std::string& folder, std::string& path, bool here) {
  std::error_code ec;
  if (folder.empty() || !std::filesystem::is_regular_file(path, ec)) return {};
  const std::string out = std::filesystem::path(path).replace_extension(".prepared").string();
  const std::vector<std::string> command{"nanquest", "prepare", "--model", folder,
                                         "--data",   path,      "--out",   out};
  if (!here) {
    path = out;
    return {};
  }
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + shell_word(word);
  const pid_t child = begun(command);
  if (child < 0)
    return {.exit_code = exit_code(ErrorCode::usage),
            .error = {ErrorCode::usage, path + ": not prepared, and there is no command nanquest to do it",
                      "where nanquest's Python package is installed: " + line + ", then give --data " + out}};
  std::fprintf(stderr, "data: %s\n", line.c_str());
  const int code = exit_code_of(child);
  // 1: done, except for lines that were skipped on request.
  if (code > 1) return {.exit_code = code, .told = true};
  path = out;
  return {};
}

}  // namespace nanquest::trainer
