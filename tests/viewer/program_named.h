/// A shell script in the place of nanquest-replay, for what a window does with it.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "probe/snapshot/atomic_file.h"
#include "tests/viewer/fixture.h"

namespace nanquest::viewer::testing {

/// As long as it lives, nanquest-replay is this script, and is on no other path.
class ReplayScript {
 public:
  explicit ReplayScript(const std::string& script) : path_(std::getenv("PATH")) {
    const std::string file = folder_.path() + "/nanquest-replay";
    if (!script.empty()) {
      if (!write_file_atomically(file, "#!/bin/sh\nexport PATH=" + path_ + "\n" + script + "\n"))
        throw std::runtime_error("no script could be written");
      std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    }
    ::setenv("NANQUEST_BIN", folder_.path().c_str(), 1);
    ::setenv("PATH", "/nowhere", 1);
  }
  ~ReplayScript() {
    ::unsetenv("NANQUEST_BIN");
    ::setenv("PATH", path_.c_str(), 1);
  }
  ReplayScript(const ReplayScript&) = delete;
  ReplayScript& operator=(const ReplayScript&) = delete;

 private:
  TempDir folder_;
  std::string path_;
};

/// Whether this becomes true within half a minute.
template <class True>
bool comes(True&& is_true) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace nanquest::viewer::testing
