/// Running the built programs and looking at what they leave.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace nanquest::testing {

/// A directory of its own for one test; removed at its end.
class Scratch {
 public:
  explicit Scratch(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("nanquest_" + name + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Output {
  int code = -1;
  std::string out, err;
};

/// Runs a command line through the shell; stdout and stderr apart.
inline Output run_program(const std::string& command, const Scratch& scratch) {
  const std::string out = scratch / "stdout.txt", err = scratch / "stderr.txt";
  const int status = std::system((command + " >'" + out + "' 2>'" + err + "'").c_str());
  Output o{WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(out), slurp(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return o;
}

/// Lets the named sample write its snapshot; returns its path.
inline std::string record_sample(const std::string& name, const Scratch& scratch, int expected_code) {
  const std::string snapshot = scratch / (name + ".h5");
  const Output o = run_program(std::string(NANQUEST_SAMPLES) + "/" + name + " '" + snapshot + "'", scratch);
  EXPECT_EQ(o.code, expected_code) << o.out << o.err;
  return snapshot;
}

}  // namespace nanquest::testing
