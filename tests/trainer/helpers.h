/// Shared by the trainer's tests: a temporary folder, and running a command.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace nanquest::trainer::test {

/// A new folder, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nanquest-trainer-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ec;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ec);
    std::filesystem::remove_all(path_, ec);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string read_file(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

/// Text with some structure to learn, the same each time; at least `bytes` long.
inline std::string some_text(std::size_t bytes) {
  const char* words[] = {"the", "loss", "of", "a", "run", "grows", "and", "then", "it", "falls", "again"};
  std::string text;
  for (std::size_t i = 0, x = 1; text.size() < bytes; ++i) {
    x = (x * 1103515245u + 12345u) % 2147483648u;
    text += words[(x >> 16) % 11];
    text += i % 9 == 8 ? '\n' : ' ';
  }
  return text;
}

struct Ran {
  int code = -1;  ///< exit code, or 128 + signal
  std::string out, err;
};

/// Runs a shell command and waits.
inline Ran run(const std::string& command, const Folder& folder) {
  const std::string full =
      "( " + command + " ) >'" + (folder / "stdout") + "' 2>'" + (folder / "stderr") + "' </dev/null";
  const int status = std::system(full.c_str());
  Ran ran;
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = read_file(folder / "stdout");
  ran.err = read_file(folder / "stderr");
  return ran;
}

}  // namespace nanquest::trainer::test
